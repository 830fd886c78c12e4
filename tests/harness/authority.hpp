#pragma once

#include <string>

#include "harness/temp_dir.hpp"

namespace harness {

/// An authority (ca.pem), a stranger, and the certificates that the authority signed: for 127.0.0.1
/// (good), for another host (elsewhere), for a client, and an expired one (yesterday). The files
/// are NAME.pem and NAME.key.
class authority {
 public:
  authority();
  std::string file(const std::string& name) const { return dir_.file(name); }
  const temp_dir& folder() const { return dir_; }

 private:
  void issue(const std::string& name, const std::string& hosts, const std::string& dates) const;
  void run(const std::string& words) const;

  temp_dir dir_;
};

}  // namespace harness
