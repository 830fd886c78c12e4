#pragma once

#include <span>

/// `holdfast demo …`: the arguments after the word demo. Returns the exit code: 0 if everything
/// came out right, 1 if a product was sold wrongly, 64 for arguments that cannot be, 66 for files
/// that cannot be used, 69 for a store that cannot, 125 for our own failure, 128+N when stopped by
/// signal N. Forks: to be called before the process has other threads or a session.
int demo_main(std::span<char* const> args);
