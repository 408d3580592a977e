// Stands for zip_reader.cpp in a build without libzip.
#include "io/zip_reader.hpp"
#include "tmaops/error.hpp"

namespace tmaops::io {

ZipReader::ZipReader(Bytes, std::string where, ZipLimits) {
  throw Error(ErrorCode::bad_format, {.where = std::move(where),
                                      .got = "an npz archive, and tmaops was built without libzip",
                                      .needed = "csv, tum, kitti or npy",
                                      .mend = std::string("npz needs libzip: ") + TMAOPS_HOW_LIBZIP + "."});
}

Bytes ZipReader::read(const ZipMember&) const { return {}; }

}  // namespace tmaops::io
