#include "src/files/pickle/torch_file.h"

#include <fmt/format.h>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/files/pickle/tensor_pickle.h"
#include "src/files/pickle/zip_index.h"

namespace ferry {
namespace {

constexpr std::string_view kZip = "PK\x03\x04";
/** The number with which torch.save began before it wrote archives, as protocol 2 pickles it. */
constexpr std::string_view kLegacy("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 14);
constexpr std::string_view kPickle = "/data.pkl";

std::string_view chars_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void check_kind(std::string_view text) {
  if (text.starts_with("version https://git-lfs"))
    refuse_torch_file("it is a Git LFS pointer, not the tensors themselves",
                      "fetch them with: git lfs pull");
  if (text.starts_with(kLegacy))
    refuse_torch_file("it is of a torch before 1.6, whose form Ferry does not read",
                      "load it once with a newer torch and save it again, best as safetensors");
  if (!text.starts_with(kZip))
    refuse_torch_file("it is no file of torch.save", "is the download complete?");
}

/** The directory in the archive, which all its names begin with. */
std::string directory_of(const ZipIndex& index) {
  std::string directory;
  int n = 0;
  for (const auto& [name, bytes] : index) {
    // torch.save writes one directory; a pickle further down is data of something else.
    if (!name.ends_with(kPickle) || name.find('/') != name.size() - kPickle.size()) continue;
    directory = name.substr(0, name.size() - kPickle.size());
    ++n;
  }
  if (n != 1)
    refuse_torch_file(fmt::format("it has {} entries '*{}', expected one", n, kPickle),
                      "is it a TorchScript program, or another archive?");
  return directory;
}

StoredTensor stored(PickledTensor tensor, const ZipIndex& index, const std::string& directory) {
  const auto found = index.find(directory + "/data/" + tensor.storage);
  if (found == index.end())
    refuse_torch_file(fmt::format("tensor '{}' lies in the storage '{}', which is missing",
                                  tensor.name, tensor.storage));
  if (std::ssize(found->second) < tensor.storage_bytes)
    refuse_torch_file(fmt::format("tensor '{}' lies in a storage of {}, of which there is {}",
                                  tensor.name, format_bytes(tensor.storage_bytes),
                                  format_bytes(std::ssize(found->second))));
  StoredTensor result = {.name = std::move(tensor.name),
                         .type = tensor.type,
                         .shape = std::move(tensor.shape),
                         .bytes = {},
                         .strides = std::move(tensor.strides)};
  const int64_t element_bytes = bits_of(result.type) / 8;
  int64_t span = result.n_elements() > 0 ? 1 : 0, row_major = 1;
  bool is_contiguous = true;
  for (size_t i = result.shape.size(); i-- > 0;) {
    if (span == 0) break;  // without elements no product of sizes is known to have room
    span += (result.shape[i] - 1) * result.strides[i];
    is_contiguous &= result.shape[i] == 1 || result.strides[i] == row_major;
    row_major *= result.shape[i];
  }
  if (is_contiguous || span == 0) result.strides.clear();
  if (span > 0)
    result.bytes = found->second.subspan(static_cast<size_t>(tensor.offset * element_bytes),
                                         static_cast<size_t>(span * element_bytes));
  return result;
}

}  // namespace

TorchFile TorchFile::open(const std::filesystem::path& path) {
  TorchFile file(MappedFile::open(path));
  const std::span<const std::byte> bytes = file.file_.bytes();
  try {
    check_kind(chars_of(bytes));
    const ZipIndex index = index_zip(bytes);
    const std::string directory = directory_of(index);
    if (const auto order = index.find(directory + "/byteorder");
        order != index.end() && chars_of(order->second) != "little")
      refuse_torch_file("its numbers are not little-endian",
                        "save it again on a machine of this kind");
    for (PickledTensor& tensor : read_tensor_pickle(index.at(directory + std::string(kPickle))))
      file.tensors_.push_back(stored(std::move(tensor), index, directory));
  } catch (const TorchFormatError& error) {
    constexpr size_t kShown = 500;  // names of a hostile file may be of any length
    throw Error(Fault::data, "torch.open",
                fmt::format("'{}': {}", path.string(), error.what.substr(0, kShown)), error.hint);
  }
  return file;
}

}  // namespace ferry
