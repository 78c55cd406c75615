#include "src/data/parquet/table_rows.h"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <arrow/ipc/api.h>
#include <parquet/arrow/reader.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace {

using arrow::Array;
using arrow::Result;
using arrow::Status;

void append_text(std::string& out, std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

template <typename Number>
void append_number(std::string& out, Number value) {
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(digits, end);
}

template <typename Float>
void append_float(std::string& out, Float value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  const size_t begin = out.size();
  append_number(out, value);
  // A whole number with a fraction's type keeps it.
  if (out.find_first_of(".e", begin) == out.npos) out += ".0";
}

void append_value(std::string& out, const Array& array, int64_t row);

template <typename List>
void append_list(std::string& out, const Array& array, int64_t row) {
  const auto& list = static_cast<const List&>(array);
  out += '[';
  const int64_t begin = list.value_offset(row), n = list.value_length(row);
  for (int64_t i = 0; i < n; ++i) {
    if (i > 0) out += ',';
    append_value(out, *list.values(), begin + i);
  }
  out += ']';
}

void append_struct(std::string& out, const Array& array, int64_t row) {
  const auto& fields = static_cast<const arrow::StructArray&>(array);
  out += '{';
  for (int i = 0; i < fields.num_fields(); ++i) {
    if (i > 0) out += ',';
    append_text(out, fields.struct_type()->field(i)->name());
    out += ':';
    append_value(out, *fields.field(i), row);
  }
  out += '}';
}

template <typename Of>
auto value_of(const Array& array, int64_t row) {
  return static_cast<const Of&>(array).Value(row);
}

/** One cell. */
void append_value(std::string& out, const Array& array, int64_t row) {
  using Type = arrow::Type;
  if (array.IsNull(row)) {
    out += "null";
    return;
  }
  switch (array.type_id()) {
    case Type::STRING:
      return append_text(out, static_cast<const arrow::StringArray&>(array).GetView(row));
    case Type::LARGE_STRING:
      return append_text(out, static_cast<const arrow::LargeStringArray&>(array).GetView(row));
    case Type::STRING_VIEW:
      return append_text(out, static_cast<const arrow::StringViewArray&>(array).GetView(row));
    case Type::DICTIONARY: {
      const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
      return append_value(out, *coded.dictionary(), coded.GetValueIndex(row));
    }
    case Type::BOOL:
      out += value_of<arrow::BooleanArray>(array, row) ? "true" : "false";
      return;
    case Type::INT8:
      return append_number(out, value_of<arrow::Int8Array>(array, row));
    case Type::INT16:
      return append_number(out, value_of<arrow::Int16Array>(array, row));
    case Type::INT32:
      return append_number(out, value_of<arrow::Int32Array>(array, row));
    case Type::INT64:
      return append_number(out, value_of<arrow::Int64Array>(array, row));
    case Type::UINT8:
      return append_number(out, value_of<arrow::UInt8Array>(array, row));
    case Type::UINT16:
      return append_number(out, value_of<arrow::UInt16Array>(array, row));
    case Type::UINT32:
      return append_number(out, value_of<arrow::UInt32Array>(array, row));
    case Type::UINT64:
      return append_number(out, value_of<arrow::UInt64Array>(array, row));
    case Type::FLOAT:
      return append_float(out, value_of<arrow::FloatArray>(array, row));
    case Type::DOUBLE:
      return append_float(out, value_of<arrow::DoubleArray>(array, row));
    case Type::LIST:
      return append_list<arrow::ListArray>(out, array, row);
    case Type::LARGE_LIST:
      return append_list<arrow::LargeListArray>(out, array, row);
    case Type::FIXED_SIZE_LIST:
      return append_list<arrow::FixedSizeListArray>(out, array, row);
    case Type::STRUCT:
      return append_struct(out, array, row);
    default:
      out += "null";
  }
}

/** The batches of a file, one after another. */
class Batches {
 public:
  virtual ~Batches() = default;
  /** Null at the end. */
  virtual Result<std::shared_ptr<arrow::RecordBatch>> next() = 0;
  virtual std::shared_ptr<arrow::Schema> schema() const = 0;
  /** The share of the file that was given, once `n_rows` of its rows were. */
  virtual double share(int64_t n_rows) const = 0;
};

/** Compressed data of some kilobytes may stand for gigabytes, and rows of nothing for any number:
 * data for training are nowhere near these. */
constexpr int64_t kMemory_least = int64_t{1} << 30, kMemory_times = 64;
constexpr int64_t kRows_least = 1'000'000, kRows_each_byte = 4;

/** What reading a file of so many bytes may hold at once. */
std::unique_ptr<arrow::MemoryPool> pool_for(int64_t n_bytes) {
  return std::make_unique<arrow::CappedMemoryPool>(
      arrow::default_memory_pool(),
      kMemory_least + kMemory_times * std::min<int64_t>(n_bytes, int64_t{1} << 40));
}

Status check_rows(int64_t n_rows, int64_t n_bytes) {
  if (n_rows <= kRows_least || n_rows / kRows_each_byte <= n_bytes) return Status::OK();
  return Status::Invalid("it says that it has ", n_rows, " rows in ", n_bytes, " bytes");
}

class ParquetBatches : public Batches {
 public:
  static Result<std::unique_ptr<Batches>> open(std::shared_ptr<arrow::io::RandomAccessFile> file,
                                               arrow::MemoryPool* pool) {
    ARROW_ASSIGN_OR_RAISE(const int64_t n_bytes, file->GetSize());
    // Without these two it holds the columns of all row groups at once.
    parquet::ReaderProperties properties(pool);
    properties.enable_buffered_stream();
    parquet::ArrowReaderProperties arrow_properties(/*use_threads=*/false);
    arrow_properties.set_pre_buffer(false);
    constexpr int64_t kBatch_rows = 4096;
    arrow_properties.set_batch_size(kBatch_rows);
    parquet::arrow::FileReaderBuilder builder;
    ARROW_RETURN_NOT_OK(builder.Open(std::move(file), properties));
    builder.memory_pool(pool);
    auto batches = std::make_unique<ParquetBatches>();
    ARROW_ASSIGN_OR_RAISE(batches->file_, builder.properties(arrow_properties)->Build());
    batches->n_rows_ = batches->file_->parquet_reader()->metadata()->num_rows();
    ARROW_RETURN_NOT_OK(check_rows(batches->n_rows_, n_bytes));
    ARROW_ASSIGN_OR_RAISE(batches->reader_, batches->file_->GetRecordBatchReader());
    return batches;
  }

  Result<std::shared_ptr<arrow::RecordBatch>> next() override {
    std::shared_ptr<arrow::RecordBatch> batch;
    ARROW_RETURN_NOT_OK(reader_->ReadNext(&batch));
    return batch;
  }
  std::shared_ptr<arrow::Schema> schema() const override { return reader_->schema(); }
  double share(int64_t n_rows) const override {
    return static_cast<double>(n_rows) / static_cast<double>(std::max<int64_t>(n_rows_, 1));
  }

 private:
  std::unique_ptr<parquet::arrow::FileReader> file_;
  std::unique_ptr<arrow::RecordBatchReader> reader_;
  int64_t n_rows_ = 0;
};

/** Arrow's files end in an index of their batches. */
class ArrowFileBatches : public Batches {
 public:
  explicit ArrowFileBatches(std::shared_ptr<arrow::ipc::RecordBatchFileReader> reader)
      : reader_(std::move(reader)) {}

  Result<std::shared_ptr<arrow::RecordBatch>> next() override {
    if (next_ >= reader_->num_record_batches()) return nullptr;
    return reader_->ReadRecordBatch(next_++);
  }
  std::shared_ptr<arrow::Schema> schema() const override { return reader_->schema(); }
  double share(int64_t /*n_rows*/) const override {
    return static_cast<double>(next_) / std::max(reader_->num_record_batches(), 1);
  }

 private:
  std::shared_ptr<arrow::ipc::RecordBatchFileReader> reader_;
  int next_ = 0;
};

/** Streams, as the datasets library keeps them, have no index. */
class ArrowStreamBatches : public Batches {
 public:
  static Result<std::unique_ptr<Batches>> open(std::shared_ptr<arrow::io::RandomAccessFile> file,
                                               const arrow::ipc::IpcReadOptions& options) {
    auto batches = std::make_unique<ArrowStreamBatches>();
    ARROW_ASSIGN_OR_RAISE(batches->n_bytes_, file->GetSize());
    ARROW_ASSIGN_OR_RAISE(batches->reader_,
                          arrow::ipc::RecordBatchStreamReader::Open(file, options));
    batches->file_ = std::move(file);
    return batches;
  }

  Result<std::shared_ptr<arrow::RecordBatch>> next() override {
    std::shared_ptr<arrow::RecordBatch> batch;
    ARROW_RETURN_NOT_OK(reader_->ReadNext(&batch));
    return batch;
  }
  std::shared_ptr<arrow::Schema> schema() const override { return reader_->schema(); }
  double share(int64_t /*n_rows*/) const override {
    const auto at = file_->Tell();
    return at.ok() ? static_cast<double>(*at) / static_cast<double>(std::max<int64_t>(n_bytes_, 1))
                   : 0;
  }

 private:
  std::shared_ptr<arrow::io::RandomAccessFile> file_;
  std::shared_ptr<arrow::ipc::RecordBatchStreamReader> reader_;
  int64_t n_bytes_ = 0;
};

Result<std::unique_ptr<Batches>> open_arrow(std::shared_ptr<arrow::io::RandomAccessFile> file,
                                            arrow::MemoryPool* pool) {
  constexpr std::string_view kMark = "ARROW1";
  ARROW_ASSIGN_OR_RAISE(const auto head, file->ReadAt(0, kMark.size()));
  ARROW_RETURN_NOT_OK(file->Seek(0));
  auto options = arrow::ipc::IpcReadOptions::Defaults();
  options.use_threads = false;
  options.memory_pool = pool;
  if (std::string_view(*head) != kMark) return ArrowStreamBatches::open(std::move(file), options);
  ARROW_ASSIGN_OR_RAISE(auto reader, arrow::ipc::RecordBatchFileReader::Open(file, options));
  return std::make_unique<ArrowFileBatches>(std::move(reader));
}

/** Says in `fault` why `call` failed; true where it did not. */
template <typename Call>
bool succeeds(const Call& call, FerryTableFault fault) {
  std::string why;
  try {
    const Status status = call();
    if (status.ok()) return true;
    why = status.message();
  } catch (const std::exception& error) {
    why = error.what();
  }
  if (fault.n_bytes > 0) {
    const size_t n = std::min(why.size(), fault.n_bytes - 1);
    std::memcpy(fault.text, why.data(), n);
    fault.text[n] = '\0';
  }
  return false;
}

}  // namespace

struct FerryTable {
  std::unique_ptr<arrow::MemoryPool> pool;  // first: all others give back to it
  std::unique_ptr<Batches> batches;
  std::shared_ptr<arrow::RecordBatch> batch;  // null: none was read, or the last is given
  int64_t next_row = 0;                       // of the batch
  int64_t n_rows = 0;                         // given so far
  std::string text;
  std::string metadata;  // of the datasets library

  /** Rows of one batch as text, as many as fill a piece. */
  Status fill() {
    constexpr size_t kPiece_bytes = 1 << 20;
    text.clear();
    while (!batch || next_row >= batch->num_rows()) {
      ARROW_ASSIGN_OR_RAISE(batch, batches->next());
      next_row = 0;
      if (!batch) return Status::OK();
      // Offsets of a damaged file may point anywhere, and texts may be no UTF-8.
      ARROW_RETURN_NOT_OK(batch->ValidateFull());
    }
    for (; next_row < batch->num_rows() && text.size() < kPiece_bytes; ++next_row, ++n_rows) {
      text += '{';
      for (int i = 0; i < batch->num_columns(); ++i) {
        if (i > 0) text += ',';
        append_text(text, batch->column_name(i));
        text += ':';
        append_value(text, *batch->column(i), next_row);
      }
      text += "}\n";
    }
    return Status::OK();
  }
};

extern "C" __attribute__((visibility("default"))) FerryTable* ferry_table_open(
    const char* path, FerryTableKind kind, FerryTableFault fault) {
  auto table = std::make_unique<FerryTable>();
  const auto open = [&]() -> Status {
    ARROW_ASSIGN_OR_RAISE(auto file, arrow::io::ReadableFile::Open(path));
    ARROW_ASSIGN_OR_RAISE(const int64_t n_bytes, file->GetSize());
    table->pool = pool_for(n_bytes);
    ARROW_ASSIGN_OR_RAISE(table->batches,
                          kind == kFerryParquet
                              ? ParquetBatches::open(std::move(file), table->pool.get())
                              : open_arrow(std::move(file), table->pool.get()));
    constexpr const char* kKey = "huggingface";
    const auto metadata = table->batches->schema()->metadata();
    if (metadata && metadata->Contains(kKey)) {
      ARROW_ASSIGN_OR_RAISE(table->metadata, metadata->Get(kKey));
    }
    return Status::OK();
  };
  return succeeds(open, fault) ? table.release() : nullptr;
}

extern "C" __attribute__((visibility("default"))) bool ferry_table_next(FerryTable* table,
                                                                        FerryTableRows* rows,
                                                                        FerryTableFault fault) {
  const bool is_read = succeeds([&] { return table->fill(); }, fault);
  *rows = {.text = table->text.data(),
           .n_bytes = table->text.size(),
           .share = is_read ? table->batches->share(table->n_rows) : 0};
  return is_read;
}

extern "C" __attribute__((visibility("default"))) void ferry_table_metadata(FerryTable* table,
                                                                            const char** text,
                                                                            size_t* n_bytes) {
  *text = table->metadata.data();
  *n_bytes = table->metadata.size();
}

extern "C" __attribute__((visibility("default"))) void ferry_table_close(FerryTable* table) {
  delete table;
}
