#pragma once

#include <string>
#include <vector>

/// The users that docs/stores/*.md call sufficient: they have exactly the rights that the page
/// grants to `app`, in the page's own words.
namespace harness {

/// On the server at `url`, an administrator's URL, makes a fresh store (a schema, a database, a
/// base path) of that name, and gives the user of least rights the rights it needs there. Returns
/// that user's URL of the store. On etcd the user has its rights already:
/// etcd_user_of_least_rights.
std::string store_of_least_rights(const std::string& url, const std::string& store);

/// The same, but a store that was given back is emptied and lent again: making one costs more than
/// most tests.
std::string lend_store_of_least_rights(const std::string& url, const std::string& store);

/// Close all sessions on the store before another store is lent.
void give_back_store(const std::string& lent);

/// On ZooKeeper: a base path on which the user of least rights has the rights `letters`, such as
/// "crd".
std::string zookeeper_base(const std::string& url, const std::string& path,
                           const std::string& letters);

/// The etcdctl commands of docs/stores/etcd.md: a role, and the user "app" that has it.
std::vector<std::string> etcd_rights_on_page();

/// The etcdctl commands that give that user the prefix, run before anybody uses the servers.
std::vector<std::string> etcd_user_of_least_rights(const std::string& prefix);

/// The code block of a page of docs/stores/ that follows these words directly.
std::string code_on_page(const std::string& page, const std::string& behind);

/// One right, such as "update" on "holdfast_meta".
struct right {
  std::string privilege, object;
};
std::vector<right> each_right_on_page(const std::string& page);

/// The statements of a page of docs/stores/ that give rights to `app`.
std::string rights_on_page(const std::string& page);

/// Uses a lock, a latch, and the calls that list and show them. An existing row needs fewer rights,
/// so each call has a name of its own. Throws the error of any call, also of a release.
void use_everything(const std::string& url, const std::string& name);

}  // namespace harness
