#include "harness/authority.hpp"

#include <cstdlib>
#include <stdexcept>

namespace harness {

namespace {
// OpenSSL makes such a key in a millisecond; an RSA key takes a hundred.
const std::string new_key = "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes ";
}  // namespace

authority::authority() {
  run(new_key + "-x509 -days 2 -subj /CN=authority -keyout ca.key -out ca.pem");
  run(new_key + "-x509 -days 2 -subj /CN=stranger -keyout stranger.key -out stranger.pem");
  issue("good", "IP:127.0.0.1,DNS:localhost", "-days 2");
  issue("elsewhere", "DNS:elsewhere.example", "-days 2");
  issue("client", "DNS:client", "-days 2");
  issue("yesterday", "IP:127.0.0.1", "-days -1");
}

void authority::issue(const std::string& name, const std::string& hosts,
                      const std::string& dates) const {
  run(new_key + "-subj /CN=" + name + " -keyout " + name + ".key -out " + name + ".csr");
  run("x509 -req -in " + name + ".csr -CA ca.pem -CAkey ca.key -CAcreateserial " + dates +
      " -out " + name + ".pem -extfile <(echo subjectAltName=" + hosts + ")");
}

void authority::run(const std::string& words) const {
  const std::string line =
      "cd " + dir_.path().string() + " && bash -c 'openssl " + words + "' 2> log";
  if (std::system(line.c_str()) != 0) throw std::runtime_error("openssl " + words + " failed");
}

}  // namespace harness
