#include "src/files/zip_file.h"

#include <fmt/format.h>
#include <zip.h>

#include <memory>

#include "src/base/error.h"

namespace ferry {
namespace {

[[noreturn]] void refuse(Fault fault, const std::filesystem::path& target, const std::string& why) {
  throw Error(fault, "files.zip",
              fmt::format("'{}' could not be written: {}", target.string(), why),
              "choose another file with --output FILE");
}

std::string text_of(int code) {
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

struct Discard {
  void operator()(zip_t* zip) const { zip_discard(zip); }
};

}  // namespace

void write_zip(const std::filesystem::path& target, std::span<const ZipEntry> entries) {
  int code = 0;
  // libzip writes beside the target and renames when all is there.
  std::unique_ptr<zip_t, Discard> zip(zip_open(target.c_str(), ZIP_CREATE | ZIP_EXCL, &code));
  if (!zip) refuse(code == ZIP_ER_EXISTS ? Fault::usage : Fault::machine, target, text_of(code));
  for (const ZipEntry& entry : entries) {
    zip_source_t* source = zip_source_buffer(zip.get(), entry.text.data(), entry.text.size(), 0);
    if (source && zip_file_add(zip.get(), entry.name.c_str(), source, ZIP_FL_ENC_UTF_8) >= 0)
      continue;
    const std::string why = zip_strerror(zip.get());
    if (source) zip_source_free(source);
    refuse(Fault::machine, target, why);
  }
  if (zip_close(zip.get()) != 0) refuse(Fault::machine, target, zip_strerror(zip.get()));
  static_cast<void>(zip.release());  // closed
  std::error_code error;             // a file system without permissions keeps none
  std::filesystem::permissions(
      target, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write, error);
}

}  // namespace ferry
