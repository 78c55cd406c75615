// Messages about a file that could not be written, by the reason.

#include "src/files/write/write_error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "src/base/error.h"

namespace ferry {
namespace {

TEST(WriteError, SaysWhatToDoByTheReason) {
  const struct {
    int code;
    Fault fault;
    const char* hint;
  } cases[] = {{ENOSPC, Fault::machine, "the disk is full"},
               {EDQUOT, Fault::machine, "the disk is full"},
               {EACCES, Fault::machine, "you may write to"},
               {EROFS, Fault::machine, "you may write to"},
               {ENOENT, Fault::machine, "make it first"},
               {EMFILE, Fault::machine, "ulimit -n"},
               {EFBIG, Fault::machine, "ulimit -f"},
               {ENOMEM, Fault::does_not_fit, "end other programs"},
               {EIO, Fault::machine, "check the disk"}};
  for (const auto& one : cases)
    try {
      throw_write_error("some/file", "made", one.code);
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_EQ(error.fault(), one.fault) << text;
      EXPECT_NE(text.find("'some/file' could not be made: "), std::string::npos) << text;
      EXPECT_NE(text.find(one.hint), std::string::npos) << text;
    }
}

}  // namespace
}  // namespace ferry
