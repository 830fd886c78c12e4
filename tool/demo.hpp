#pragma once

#include <span>

/// `holdfast demo …`: the arguments after the word demo. Returns the exit code: 0 if all sales were
/// right, 1 if a product was sold wrongly, 64 for invalid arguments, 66 for unusable files, 69 for
/// an unusable store, 125 for our own failure, 128+N when stopped by signal N. Forks: call it
/// before the process has other threads or a session.
int demo_main(std::span<char* const> args);
