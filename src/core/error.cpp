#include "tmaops/error.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "core/entry.hpp"

namespace tmaops {
namespace {

constexpr ErrorPage kPages[] = {
#define TMAOPS_ERROR(number, name, exit_code, title, explanation, mend) \
  {ErrorCode::name, #number, #name, exit_code, title, explanation, mend},
#include "tmaops/errors.def"
#undef TMAOPS_ERROR
};

std::string compose(ErrorCode code, const ErrorDetails& details) {
  const ErrorPage& page = error_page(code);
  std::string text = std::string(page.number) + " " + std::string(page.title);
  if (!details.where.empty()) text += ": " + details.where;
  if (!details.got.empty()) text += "\n  got:    " + details.got;
  if (!details.needed.empty()) text += "\n  needed: " + details.needed;
  text += "\n  mend:   " + (details.mend.empty() ? std::string(page.mend) : details.mend);
  return text;
}

/// Made at the start, since later there may be no memory. Copying it takes none.
const Error kOutOfMemory(ErrorCode::out_of_memory, {.where = "", .got = "", .needed = ""});

}  // namespace

static_assert(std::is_nothrow_copy_constructible_v<Error>);

std::span<const ErrorPage> error_catalogue() { return kPages; }

const ErrorPage& error_page(ErrorCode code) {
  const auto page = std::ranges::lower_bound(kPages, code, {}, &ErrorPage::code);
  if (page == std::end(kPages) || page->code != code) return error_page(ErrorCode::internal);
  return *page;
}

Error::Error(ErrorCode code, ErrorDetails details)
    : std::runtime_error(compose(code, details)),
      code_(code),
      details_(std::make_shared<const ErrorDetails>(std::move(details))) {}

Error::~Error() = default;

namespace detail {

void throw_as_error(std::string_view where) {
  try {
    try {
      throw;
    } catch (const Error&) {
      throw;
    } catch (const std::bad_alloc&) {
    } catch (const std::length_error&) {  // more elements than a container can hold
    } catch (const std::exception& other) {
      throw Error(ErrorCode::internal,
                  {.where = std::string(where), .got = other.what(), .needed = "an error of the catalogue"});
    }
    throw Error(ErrorCode::out_of_memory, {.where = std::string(where),
                                           .got = "an allocation that failed",
                                           .needed = "memory for what the call works with"});
  } catch (const std::bad_alloc&) {
    throw Error(kOutOfMemory);  // there is no memory for the message either
  }
}

}  // namespace detail

}  // namespace tmaops
