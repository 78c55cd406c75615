#pragma once
// The offer of the library libferry_arrow.so: the rows of a Parquet or Arrow file as lines of JSON.
// src/data/read/formats/table_file.cpp opens it when the first such file is read, so that nothing
// else loads Arrow. Plain C types pass between the two.

#include <cstddef>

extern "C" {

enum FerryTableKind { kFerryParquet = 0, kFerryArrow = 1 };

/** Takes the next bytes of the text; false ends the reading. */
using FerryTakeText = bool (*)(void* to, const char* text, size_t n_bytes);

/** Gives each row of the file to `take` as an object and a line end, many rows at once. Null stands
 * for what JSON has no form for: nulls, numbers that are not finite, bytes, dates. False where the
 * file cannot be read or `take` ended it: `fault` then says why, cut to n_fault bytes. */
using FerryTableRows = bool(const char* path,
                            FerryTableKind kind,
                            void* to,
                            FerryTakeText take,
                            char* fault,
                            size_t n_fault);

}  // extern "C"

inline constexpr const char* kFerryTableRowsName = "ferry_table_rows";
