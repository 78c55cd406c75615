#pragma once
// Zero-filled pages of host memory from the system, large ones where it gives them. Owns the
// mapping.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ferry {

class MappedPages {
 public:
  /** Starts on a large page's boundary, or the first and last of them would be small ones. Throws
   * Error(does_not_fit): "no 3.0 GiB of `what`", with `cure`. */
  MappedPages(int64_t n_bytes, std::string_view what, std::string_view cure);
  ~MappedPages();
  MappedPages(const MappedPages&) = delete;
  MappedPages& operator=(const MappedPages&) = delete;
  /** Null where none were asked for. */
  std::byte* data() const { return data_; }
  int64_t n_bytes() const { return n_bytes_; }

 private:
  std::byte* data_ = nullptr;
  int64_t n_bytes_;
};

}  // namespace ferry
