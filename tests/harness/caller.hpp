#pragma once

namespace harness {

/// Servers and client libraries read variables that the person who runs the tests may have set for
/// servers of their own (PGSERVICE, MYSQL_PWD, ETCD_NAME, http_proxy, …), and servers of another
/// user must be able to read our files. Takes away those variables, and sets the usual umask. Once:
/// what a test sets for its roles reaches them.
void forget_the_callers_settings();

}  // namespace harness
