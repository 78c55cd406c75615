#pragma once
// File systems that a test mounts, where it may: in memory, in a file, or a part of another one.

#include <sys/mount.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

namespace ferry::test {

inline constexpr std::string_view kNoMount = "nothing can be mounted here (that takes root)";

/** A file system at a directory, which is made. */
class Mounted {
 public:
  Mounted(std::filesystem::path at, const char* type, const char* options, unsigned long flags = 0)
      : at_(std::move(at)) {
    std::filesystem::create_directory(at_);
    is_mounted_ = ::mount("ferry-test", at_.c_str(), type, flags, options) == 0;
  }
  ~Mounted() {
    if (is_mounted_) ::umount2(at_.c_str(), MNT_DETACH);
  }
  Mounted(const Mounted&) = delete;
  Mounted& operator=(const Mounted&) = delete;
  explicit operator bool() const { return is_mounted_; }
  std::filesystem::path operator/(std::string_view name) const { return at_ / name; }
  const std::filesystem::path& path() const { return at_; }

 private:
  std::filesystem::path at_;
  bool is_mounted_;
};

/** The file system of an image at a directory, which is made: a drive that can be connected
 * somewhere else. */
class MountedImage {
 public:
  MountedImage(const std::filesystem::path& image, std::filesystem::path at) : at_(std::move(at)) {
    std::filesystem::create_directory(at_);
    // Past the page cache, so that what is read comes from the image each time.
    is_mounted_ = runs("d=$(losetup --find --show --direct-io=on '" + image.string() +
                       "') || d=$(losetup --find --show '" + image.string() + "') && { mount $d '" +
                       at_.string() + "'; r=$?; losetup --detach $d; [ $r = 0 ]; }");
  }
  ~MountedImage() {
    if (is_mounted_ && !runs("umount '" + at_.string() + "'")) ::umount2(at_.c_str(), MNT_DETACH);
  }
  MountedImage(const MountedImage&) = delete;
  MountedImage& operator=(const MountedImage&) = delete;
  explicit operator bool() const { return is_mounted_; }
  const std::filesystem::path& path() const { return at_; }

  /** False where it cannot be made. */
  static bool make(const std::filesystem::path& image,
                   int mib,
                   const std::string& mkfs = "mkfs.ext4") {
    return runs("truncate -s " + std::to_string(mib) + "M '" + image.string() + "' && " + mkfs +
                " -q '" + image.string() + "'");
  }

 private:
  static bool runs(const std::string& command) {
    return std::system(
               ("PATH=$PATH:/sbin:/usr/sbin; { " + command + "; } >/dev/null 2>&1").c_str()) == 0;
  }

  std::filesystem::path at_;
  bool is_mounted_ = false;
};

/** A directory that shows another one, read-only. */
class ReadOnlyView {
 public:
  ReadOnlyView(const std::filesystem::path& of, std::filesystem::path at) : at_(std::move(at)) {
    std::filesystem::create_directory(at_);
    is_bound_ = ::mount(of.c_str(), at_.c_str(), nullptr, MS_BIND, nullptr) == 0;
    is_mounted_ = is_bound_ && ::mount(nullptr, at_.c_str(), nullptr,
                                       MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) == 0;
  }
  ~ReadOnlyView() {
    if (is_bound_) ::umount2(at_.c_str(), MNT_DETACH);
  }
  ReadOnlyView(const ReadOnlyView&) = delete;
  ReadOnlyView& operator=(const ReadOnlyView&) = delete;
  explicit operator bool() const { return is_mounted_; }
  const std::filesystem::path& path() const { return at_; }

 private:
  std::filesystem::path at_;
  bool is_bound_ = false, is_mounted_ = false;
};

}  // namespace ferry::test
