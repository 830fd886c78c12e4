#pragma once

namespace harness {

/// Removes the environment variables by which the settings of the person who runs the tests would
/// reach the servers and client libraries of the tests (PGSERVICE, MYSQL_PWD, ETCD_NAME,
/// http_proxy, …), and sets the usual umask, because servers that run as another user must be able
/// to read our files. A role does nothing of this, so the variables that a test sets for its roles
/// reach them.
void forget_the_callers_settings();

}  // namespace harness
