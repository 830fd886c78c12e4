#pragma once

#include <holdfast/session.hpp>
#include <string>

/// Holders whose process has ended, where the store sees that (participant::died).
namespace holdfast::tool {

/// The view of the next program that asks: dead participants neither hold nor wait.
name_info without_the_dead(name_info info);

/// "the holder died; the next program that asks gets it", or how many of them; empty if all live.
std::string death_phrase(const name_info& info);

}  // namespace holdfast::tool
