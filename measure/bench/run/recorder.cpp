#include "bench/run/recorder.hpp"

#include <algorithm>
#include <utility>

namespace tmaops::bench {

void Recorder::note(const std::string& text) const {
  if (observer_.note) observer_.note(text);
}

void Recorder::progress(const Workload& workload, const std::string& what, double part) const {
  if (observer_.progress)
    observer_.progress(finished_ * 100 + static_cast<std::size_t>(part * 100), expected_ * 100,
                       workload.info().op + " " + workload.info().name + ": " + what);
}

void Recorder::refuse(Refusal refusal) {
  if (!tells_refusals_) return;
  if (observer_.refused) observer_.refused(refusal);
  report_.refused.push_back(std::move(refusal));
}

void Recorder::add(Row row) {
  if (observer_.row) observer_.row(row);
  (row.error.ok ? report_.rows : report_.failed).push_back(std::move(row));
}

Row* Recorder::find(const Row& like) {
  const auto found = std::ranges::find_if(
      report_.rows, [&](const Row& row) { return row.implementation == like.implementation && same_case(row, like); });
  return found == report_.rows.end() ? nullptr : &*found;
}

Report Recorder::take() {
  if (interrupted()) report_.status = Status::partial;
  return std::move(report_);
}

}  // namespace tmaops::bench
