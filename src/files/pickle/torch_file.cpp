#include "src/files/pickle/torch_file.h"

#include <fmt/format.h>

#include <cstring>
#include <unordered_map>
#include <utility>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/files/pickle/tensor_pickle.h"
#include "src/files/pickle/zip_index.h"

namespace ferry {
namespace {

constexpr std::string_view kZip = "PK\x03\x04";
/** The pickles with which torch.save began before 1.6, when it wrote no archives yet: a number, and
 * the version of the form. */
constexpr std::string_view kLegacy(
    "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.", 21);
constexpr std::string_view kPickle = "/data.pkl";
constexpr const char* kBigEndian = "its numbers are not little-endian";
constexpr const char* kSaveHere = "save it again on a machine of this kind";

std::string_view chars_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void check_kind(std::string_view text) {
  if (text.starts_with("version https://git-lfs"))
    refuse_torch_file("it is a Git LFS pointer, not the tensors themselves",
                      "fetch them with: git lfs pull");
  if (!text.starts_with(kZip) && !text.starts_with(kLegacy))
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

/** The bytes of each storage, by its key. */
using Storages = std::unordered_map<std::string_view, std::span<const std::byte>>;

StoredTensor stored(PickledTensor tensor, const Storages& storages) {
  const auto found = storages.find(tensor.storage);
  if (found == storages.end())
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

/** The tensors of an archive. */
std::vector<StoredTensor> read_archive(std::span<const std::byte> bytes) {
  const ZipIndex index = index_zip(bytes);
  const std::string directory = directory_of(index), data = directory + "/data/";
  if (const auto order = index.find(directory + "/byteorder");
      order != index.end() && chars_of(order->second) != "little")
    refuse_torch_file(kBigEndian, kSaveHere);
  Storages storages;
  for (const auto& [name, entry] : index)
    if (name.starts_with(data)) storages.emplace(name.substr(data.size()), entry);
  std::vector<StoredTensor> tensors;
  for (PickledTensor& tensor : read_tensor_pickle(index.at(directory + std::string(kPickle))))
    tensors.push_back(stored(std::move(tensor), storages));
  return tensors;
}

/** The tensors of a file of torch before 1.6: what its system was, the pickle of the tensors, that
 * of the storages' keys, then of each storage its number of elements and its bytes. */
std::vector<StoredTensor> read_legacy(std::span<const std::byte> bytes) {
  bytes = bytes.subspan(kLegacy.size());
  if (!take_flag_pickle(bytes, "little_endian")) refuse_torch_file(kBigEndian, kSaveHere);
  std::vector<PickledTensor> pickled = take_tensor_pickle(bytes);
  const std::vector<std::string> keys = take_texts_pickle(bytes);
  std::unordered_map<std::string_view, const PickledTensor*> users;
  for (const PickledTensor& tensor : pickled)
    users.emplace(tensor.storage, &tensor);
  Storages storages;
  for (const std::string& key : keys) {
    const auto user = users.find(key);
    if (user == users.end())
      refuse_torch_file(fmt::format("no named tensor lies in the storage '{}'", key));
    const int64_t n_bytes = user->second->storage_bytes;
    uint64_t n_elements = 0;
    if (bytes.size() < sizeof n_elements) refuse_torch_file("it is cut off");
    std::memcpy(&n_elements, bytes.data(), sizeof n_elements);
    bytes = bytes.subspan(sizeof n_elements);
    const auto element_bytes = static_cast<uint64_t>(bits_of(user->second->type) / 8);
    const uint64_t expected = static_cast<uint64_t>(n_bytes) / element_bytes;
    // A storage without a type counts bytes.
    if (n_elements != expected && n_elements != static_cast<uint64_t>(n_bytes))
      refuse_torch_file(
          fmt::format("the storage '{}' has {} elements, expected {}", key, n_elements, expected));
    if (std::ssize(bytes) < n_bytes) refuse_torch_file("it is cut off");
    if (!storages.emplace(key, bytes.first(static_cast<size_t>(n_bytes))).second)
      refuse_torch_file(fmt::format("the storage '{}' is there twice", key));
    bytes = bytes.subspan(static_cast<size_t>(n_bytes));
  }
  std::vector<StoredTensor> tensors;
  for (PickledTensor& tensor : pickled)
    tensors.push_back(stored(std::move(tensor), storages));
  return tensors;
}

}  // namespace

TorchFile TorchFile::open(const std::filesystem::path& path) {
  TorchFile file(MappedFile::open(path));
  const std::span<const std::byte> bytes = file.file_.bytes();
  try {
    check_kind(chars_of(bytes));
    file.tensors_ = chars_of(bytes).starts_with(kLegacy) ? read_legacy(bytes) : read_archive(bytes);
  } catch (const TorchFormatError& error) {
    constexpr size_t kShown = 500;  // names of a hostile file may be of any length
    throw Error(Fault::data, "torch.open",
                fmt::format("'{}': {}", path.string(), error.what.substr(0, kShown)), error.hint);
  }
  return file;
}

}  // namespace ferry
