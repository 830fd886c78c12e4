#pragma once

#include <string_view>

namespace holdfast::store::sqlite {

/// write(2) without SIGPIPE: 0, or what errno says. Into a pipe up to PIPE_BUF bytes are written
/// whole or not at all.
int write_quietly(int pipe, std::string_view bytes) noexcept;

}  // namespace holdfast::store::sqlite
