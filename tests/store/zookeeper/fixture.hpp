#pragma once

#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>
#include <memory>
#include <string>
#include <vector>

#include "harness/crowd.hpp"
#include "harness/zookeeper_ensemble.hpp"

typedef struct _zhandle zhandle_t;

namespace zookeeper_test {

/// The tree as ZooKeeper's own client sees it, with a session of its own.
class tree {
 public:
  /// `login` as in "user:password".
  explicit tree(const std::string& hosts, const std::string& login = {});
  ~tree();
  tree(const tree&) = delete;

  /// Empty also if there is no such node.
  std::vector<std::string> children(const std::string& path) const;
  bool has(const std::string& path) const;
  std::string data(const std::string& path) const;
  /// For everybody, or only for the user that is logged in.
  void make(const std::string& path, bool only_mine = false) const;
  void remove(const std::string& path) const;
  /// With all that is below it; nothing need be there.
  void remove_all(const std::string& path) const;
  /// In one step, if `guard` exists; false if it does not.
  bool write_if(const std::string& guard, const std::string& path, const std::string& data) const;

 private:
  void catch_up() const;
  zhandle_t* handle_;
};

using harness::thrown_by;

/// Three servers, shared by the tests that leave their servers as they are.
const harness::zookeeper_ensemble& calm_ensemble();

/// A base path that nobody has used.
std::string fresh_base();

}  // namespace zookeeper_test
