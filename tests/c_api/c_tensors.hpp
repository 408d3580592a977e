// Tensors of the C interface over buffers of the tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tmaops/dtype.hpp"
#include "tmaops/tmaops.h"

namespace tmaops::c_api_test {

inline constexpr tmaops_dtype kDTypes[] = {TMAOPS_F64, TMAOPS_F32, TMAOPS_F16, TMAOPS_BF16,
                                           TMAOPS_I64, TMAOPS_I32, TMAOPS_U8};

/// An owned row-major tensor as C sees it. Does not move: `tensor` points to its shape.
template <class T>
class CTensor {
 public:
  explicit CTensor(std::vector<std::int64_t> shape) : shape_(std::move(shape)) {
    std::size_t size = 1;
    for (const std::int64_t extent : shape_) size *= static_cast<std::size_t>(extent);
    values.resize(size);
    tensor = {.data = values.data(),
              .device = {tmaops_device_cpu, 0},
              .ndim = static_cast<std::int32_t>(shape_.size()),
              .dtype = kDTypes[static_cast<std::size_t>(dtype_of<T>)],
              .shape = shape_.data(),
              .strides = nullptr,
              .byte_offset = 0};
  }
  CTensor(std::vector<std::int64_t> shape, std::vector<T> given) : CTensor(std::move(shape)) {
    EXPECT_EQ(given.size(), values.size());
    values.assign(given.begin(), given.end());
  }
  CTensor(const CTensor&) = delete;
  CTensor& operator=(const CTensor&) = delete;

  operator const tmaops_tensor*() const { return &tensor; }  // NOLINT(google-explicit-constructor)

  std::vector<T> values;
  tmaops_tensor tensor{};

 private:
  std::vector<std::int64_t> shape_;
};

/// Expects that a call failed so, at this argument.
inline void expect_failed(int status, int code, const char* where) {
  EXPECT_EQ(status, code);
  EXPECT_EQ(tmaops_last_error()->code, code) << tmaops_last_error()->message;
  EXPECT_STREQ(tmaops_last_error()->where, where) << tmaops_last_error()->message;
}

}  // namespace tmaops::c_api_test
