#include "c_api/plan.hpp"

using tmaops::c_api::Arguments;
using tmaops::c_api::status_of_call;

int tmaops_plan_run(const tmaops_plan* plan, tmaops_stream stream) {
  return status_of_call("tmaops_plan_run", [&](const Arguments& arguments) {
    arguments.place("plan", plan);
    plan->plan.run(stream);
  });
}

int tmaops_plan_rebind(tmaops_plan* plan, const void* const* data, int64_t count) {
  return status_of_call("tmaops_plan_rebind", [&](const Arguments& arguments) {
    arguments.place("plan", plan);
    plan->plan.rebind(arguments.list("data", data, count));
  });
}

const char* tmaops_plan_variant(const tmaops_plan* plan) { return plan ? plan->variant.c_str() : nullptr; }
const char* tmaops_plan_config(const tmaops_plan* plan) { return plan ? plan->config.c_str() : nullptr; }
void tmaops_plan_destroy(tmaops_plan* plan) { delete plan; }
