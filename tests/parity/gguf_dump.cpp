// Writes each tensor of a GGUF file as fp32: gguf_dump FILE DIRECTORY makes DIRECTORY/<name>.
// gguf_files.py compares them with what another reader makes of the file.

#include <filesystem>
#include <fstream>
#include <iostream>
#include <vector>

#include "src/files/gguf/gguf.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::filesystem::path directory = argv[2];
  try {
    const ferry::GgufFile file = ferry::GgufFile::open(argv[1]);
    std::filesystem::create_directories(directory);
    for (const ferry::GgufTensor& tensor : file.tensors()) {
      std::ofstream out(directory / tensor.name, std::ios::binary);
      std::vector<float> row(static_cast<size_t>(tensor.columns()));
      for (int64_t r = 0; r < tensor.rows(); ++r) {
        tensor.read_row(r, row);
        out.write(reinterpret_cast<const char*>(row.data()),
                  static_cast<std::streamsize>(row.size() * sizeof(float)));
      }
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
