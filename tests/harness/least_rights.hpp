#pragma once

#include <string>
#include <vector>

/// The users that docs/stores/*.md says are enough: they may do what that page grants to `app`, in
/// its own words, and nothing else.
namespace harness {

/// On a server whose `url` is an administrator's: makes a fresh store (a schema, a database, a base
/// path) of that name, and gives the user of least rights what it needs there. That user's URL of
/// the store. On etcd the user has its rights already: etcd_user_of_least_rights.
std::string store_of_least_rights(const std::string& url, const std::string& store);

/// The same, but a store that was given back is emptied and lent again: to make one costs more than
/// most tests do.
std::string lend_store_of_least_rights(const std::string& url, const std::string& store);

/// Whoever has it open closes it before another is lent.
void give_back_store(const std::string& lent);

/// On ZooKeeper: a base path on which the user of least rights has those, as in "crd".
std::string zookeeper_base(const std::string& url, const std::string& path,
                           const std::string& letters);

/// What docs/stores/etcd.md has etcdctl do: a role, and the user "app" that has it.
std::vector<std::string> etcd_rights_on_page();

/// What etcdctl is told, before anybody uses the servers: that user has the prefix.
std::vector<std::string> etcd_user_of_least_rights(const std::string& prefix);

/// The code of a page of docs/stores/ that stands right behind these words.
std::string code_on_page(const std::string& page, const std::string& behind);

/// One of them: "update", "holdfast_meta".
struct right {
  std::string privilege, object;
};
std::vector<right> each_right_on_page(const std::string& page);

/// The statements of a page of docs/stores/ that give rights to `app`.
std::string rights_on_page(const std::string& page);

/// A lock, a latch, and what lists and shows them. A row that is there needs fewer rights, so each
/// call has a name of its own. Throws what failed, a release too.
void use_everything(const std::string& url, const std::string& name);

}  // namespace harness
