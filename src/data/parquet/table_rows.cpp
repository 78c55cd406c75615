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

struct Taker {
  void* to;
  FerryTakeText take;
};

Status give_rows(const arrow::RecordBatch& batch, const Taker& taker) {
  // Offsets of a damaged file may point anywhere, and texts may be no UTF-8.
  ARROW_RETURN_NOT_OK(batch.ValidateFull());
  constexpr size_t kPiece_bytes = 1 << 20;
  std::string text;
  const auto give = [&] {
    const bool goes_on = taker.take(taker.to, text.data(), text.size());
    text.clear();
    return goes_on ? Status::OK() : Status::OutOfMemory("its rows do not fit into memory");
  };
  for (int64_t row = 0; row < batch.num_rows(); ++row) {
    text += '{';
    for (int i = 0; i < batch.num_columns(); ++i) {
      if (i > 0) text += ',';
      append_text(text, batch.column_name(i));
      text += ':';
      append_value(text, *batch.column(i), row);
    }
    text += "}\n";
    if (text.size() >= kPiece_bytes) ARROW_RETURN_NOT_OK(give());
  }
  return give();
}

Status read_parquet(std::shared_ptr<arrow::io::RandomAccessFile> file, const Taker& taker) {
  ARROW_ASSIGN_OR_RAISE(auto reader,
                        parquet::arrow::OpenFile(std::move(file), arrow::default_memory_pool()));
  reader->set_use_threads(false);
  ARROW_ASSIGN_OR_RAISE(auto batches, reader->GetRecordBatchReader());
  std::shared_ptr<arrow::RecordBatch> batch;
  for (;;) {
    ARROW_RETURN_NOT_OK(batches->ReadNext(&batch));
    if (!batch) return Status::OK();
    ARROW_RETURN_NOT_OK(give_rows(*batch, taker));
  }
}

/** Arrow's files end in an index of their batches; streams, as the datasets library keeps them,
 * have none. */
Status read_arrow(std::shared_ptr<arrow::io::RandomAccessFile> file, const Taker& taker) {
  constexpr std::string_view kMark = "ARROW1";
  ARROW_ASSIGN_OR_RAISE(const auto head, file->ReadAt(0, kMark.size()));
  ARROW_RETURN_NOT_OK(file->Seek(0));
  auto options = arrow::ipc::IpcReadOptions::Defaults();
  options.use_threads = false;
  std::shared_ptr<arrow::RecordBatch> batch;
  if (std::string_view(*head) == kMark) {
    ARROW_ASSIGN_OR_RAISE(const auto reader,
                          arrow::ipc::RecordBatchFileReader::Open(file, options));
    for (int i = 0; i < reader->num_record_batches(); ++i) {
      ARROW_ASSIGN_OR_RAISE(batch, reader->ReadRecordBatch(i));
      ARROW_RETURN_NOT_OK(give_rows(*batch, taker));
    }
    return Status::OK();
  }
  ARROW_ASSIGN_OR_RAISE(const auto reader,
                        arrow::ipc::RecordBatchStreamReader::Open(file, options));
  for (;;) {
    ARROW_RETURN_NOT_OK(reader->ReadNext(&batch));
    if (!batch) return Status::OK();
    ARROW_RETURN_NOT_OK(give_rows(*batch, taker));
  }
}

Status read_rows(const char* path, FerryTableKind kind, const Taker& taker) {
  ARROW_ASSIGN_OR_RAISE(auto file, arrow::io::ReadableFile::Open(path));
  return kind == kFerryParquet ? read_parquet(file, taker) : read_arrow(file, taker);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) bool ferry_table_rows(const char* path,
                                                                        FerryTableKind kind,
                                                                        void* to,
                                                                        FerryTakeText take,
                                                                        char* fault,
                                                                        size_t n_fault) {
  std::string why;
  try {
    const Status status = read_rows(path, kind, {to, take});
    if (status.ok()) return true;
    why = status.message();
  } catch (const std::exception& error) {
    why = error.what();
  }
  if (n_fault > 0) {
    const size_t n = std::min(why.size(), n_fault - 1);
    std::memcpy(fault, why.data(), n);
    fault[n] = '\0';
  }
  return false;
}
