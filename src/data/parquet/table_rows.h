#pragma once
// The offer of the library libferry_arrow.so: the rows of a Parquet or Arrow file as lines of JSON,
// some at a time, so that a file may be larger than the memory.
// src/data/read/formats/table_file.cpp opens it when the first such file is read, so that nothing
// else loads Arrow. Plain C types pass between the two.

#include <cstddef>

extern "C" {

enum FerryTableKind { kFerryParquet = 0, kFerryArrow = 1 };

/** An open file; one thread at a time uses it. */
struct FerryTable;

/** Why a call failed, cut to n_bytes with a 0 at the end. */
struct FerryTableFault {
  char* text;
  size_t n_bytes;
};

/** The next rows of a table: an object and a line end each. They stay until the next call. */
struct FerryTableRows {
  const char* text;
  size_t n_bytes;  ///< 0: there are no more
  double share;    ///< of the file's rows or batches that was given so far, from 0 to 1
};

/** Null where the file cannot be read. */
using FerryTableOpen = FerryTable*(const char* path, FerryTableKind kind, FerryTableFault fault);
/** Null stands for what JSON has no form for: nulls, numbers that are not finite, bytes, dates.
 * False where the file cannot be read any further. */
using FerryTableNext = bool(FerryTable* table, FerryTableRows* rows, FerryTableFault fault);
/** The text of the schema's metadata under the key "huggingface", as the datasets library writes
 * it; n_bytes 0 where there is none. It stays as long as the table. */
using FerryTableMetadata = void(FerryTable* table, const char** text, size_t* n_bytes);
using FerryTableClose = void(FerryTable* table);

}  // extern "C"

inline constexpr const char *kFerryTableOpenName = "ferry_table_open",
                            *kFerryTableNextName = "ferry_table_next",
                            *kFerryTableMetadataName = "ferry_table_metadata",
                            *kFerryTableCloseName = "ferry_table_close";
