#include "src/base/out_of_memory.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

namespace ferry {
namespace {

TEST(OutOfMemory, IsToldWithACureWhoeverNoticedIt) {
  const auto holds = [](const std::exception& e) {
    const auto error = out_of_memory(e);
    if (!error) return false;
    const std::string text = error->what();
    EXPECT_EQ(error->exit_code(), 3);
    EXPECT_NE(text.find("host memory ran out"), std::string::npos) << text;
    EXPECT_NE(text.find("--resume"), std::string::npos) << text;
    EXPECT_EQ(text.find("frame #0"), std::string::npos) << text;
    return true;
  };
  EXPECT_TRUE(holds(std::bad_alloc()));
  EXPECT_TRUE(holds(std::system_error(EAGAIN, std::generic_category())));
  EXPECT_TRUE(holds(std::system_error(ENOMEM, std::generic_category(), "mmap")));
  EXPECT_TRUE(holds(std::runtime_error(
      "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: "
      "you tried to allocate 4096 bytes. Error code 12\nframe #0: somewhere")));
  EXPECT_TRUE(holds(std::runtime_error("pthread_create has failed: Resource temporarily ...")));

  EXPECT_FALSE(holds(std::runtime_error("no such file")));
  EXPECT_FALSE(holds(std::system_error(EIO, std::generic_category())));
  EXPECT_FALSE(holds(Error(Fault::data, "x", "not enough memory cells in the table")));
}

}  // namespace
}  // namespace ferry
