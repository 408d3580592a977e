#include "tmaops/error.hpp"

#include <utility>

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

}  // namespace

std::span<const ErrorPage> error_catalogue() { return kPages; }

const ErrorPage& error_page(ErrorCode code) { return kPages[static_cast<std::size_t>(code)]; }

Error::Error(ErrorCode code, ErrorDetails details)
    : std::runtime_error(compose(code, details)), code_(code), details_(std::move(details)) {}

}  // namespace tmaops
