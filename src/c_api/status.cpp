#include "c_api/status.hpp"

#include <optional>

#include "tmaops/tmaops.h"

namespace tmaops::c_api {
namespace {

/// A copy of the error, which allocates nothing, and its parts as C reads them.
struct LastError {
  std::optional<Error> error{};
  tmaops_error parts{0, "", "", "", "", "", "", ""};
};

LastError& last_error() {
  thread_local LastError last;
  return last;
}

/// Made while there is memory: copying it takes none.
const Error kUnknown(ErrorCode::internal, {.where = "",
                                           .got = "an exception that is no std::exception",
                                           .needed = "an error of the catalogue"});

}  // namespace

int remember(const Error& error) noexcept {
  LastError& last = last_error();
  const Error& kept = last.error.emplace(error);
  const ErrorPage& page = error_page(kept.code());  // its texts are literals of errors.def, which end with a zero
  const ErrorDetails& details = kept.details();
  last.parts = {.code = kept.value(),
                .number = page.number.data(),
                .name = page.name.data(),
                .where = details.where.c_str(),
                .got = details.got.c_str(),
                .needed = details.needed.c_str(),
                .mend = details.mend.empty() ? page.mend.data() : details.mend.c_str(),
                .message = kept.what()};
  return last.parts.code;
}

int remember_unknown() noexcept { return remember(kUnknown); }

}  // namespace tmaops::c_api

const tmaops_error* tmaops_last_error() { return &tmaops::c_api::last_error().parts; }
