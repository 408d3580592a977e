// How a peer says that it does not take a case.
#pragma once

#include <string>

#include "tmaops/error.hpp"

namespace tmaops::bench {

/// Throws Error variant_refuses: what the peer needs and does not have.
[[noreturn]] inline void peer_refuses(const std::string& peer, const std::string& needed) {
  throw Error(ErrorCode::variant_refuses, {.where = peer, .got = "", .needed = needed});
}

}  // namespace tmaops::bench
