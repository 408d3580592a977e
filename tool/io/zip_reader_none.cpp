// Stands for zip_reader.cpp in a build without libzip.
#include "core/fail.hpp"
#include "io/zip_reader.hpp"

namespace tmaops::io {

ZipReader::ZipReader(Bytes, std::string where, ZipLimits) {
  fail(ErrorCode::bad_format, where, "an npz archive, and tmaops was built without libzip", "csv, tum, kitti or npy",
       std::string("npz needs libzip: ") + TMAOPS_HOW_LIBZIP + ".");
}

Bytes ZipReader::read(const ZipMember&) const { return {}; }

}  // namespace tmaops::io
