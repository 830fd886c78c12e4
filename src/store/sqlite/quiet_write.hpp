#pragma once

#include <string_view>

namespace holdfast::store::sqlite {

/// write(2) without SIGPIPE. Returns 0, or the value of errno. Up to PIPE_BUF bytes are written
/// into a pipe completely or not at all.
int write_quietly(int pipe, std::string_view bytes) noexcept;

}  // namespace holdfast::store::sqlite
