// What a kind of error means to a scheduler, and to a person.
#include "launcher/exit_codes.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include "checkpoints/corrupt_checkpoint.h"
#include "data/errors.h"
#include "distributed/communication_error.h"

namespace tupelo::exit_codes_test {
namespace {

c10::Error torch_error(const std::string& message) {
  return {c10::SourceLocation{__func__, __FILE__, __LINE__}, message};
}

TEST(ExitCodes, FollowTheKindOfAnError) {
  EXPECT_EQ(exit_code_of(CorpusError("x")), ExitCode::kCorrupt);
  EXPECT_EQ(exit_code_of(CorruptCheckpoint("x")), ExitCode::kCorrupt);
  EXPECT_EQ(exit_code_of(NumericsError("x")), ExitCode::kNumerics);
  EXPECT_EQ(exit_code_of(CommunicationError("x")), ExitCode::kCommunication);
  EXPECT_EQ(exit_code_of(CommunicationTimeout("x")), ExitCode::kTimeout);
  EXPECT_EQ(exit_code_of(std::system_error(std::make_error_code(std::errc::io_error))),
            ExitCode::kStorage);
  EXPECT_EQ(exit_code_of(std::invalid_argument("x")), ExitCode::kUsage);
  EXPECT_EQ(exit_code_of(AgreedError(ExitCode::kTimeout, "x")), ExitCode::kTimeout);
  EXPECT_EQ(exit_code_of(torch_error("expected 2 dimensions")), ExitCode::kInternal);
}

// LibTorch's sentences for memory of the host, of a device, page-locked, and of cuBLAS and cuDNN.
TEST(ExitCodes, AllWaysThatMemoryRunsOutAreOne) {
  EXPECT_EQ(exit_code_of(std::bad_alloc()), ExitCode::kMemory);
  for (const char* message :
       {"[enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate memory: "
        "you tried to allocate 8000 bytes. Error code 12",
        "Storage size calculation overflowed with sizes=[9223372036854775807, 2]",
        "CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"}) {
    EXPECT_EQ(exit_code_of(torch_error(message)), ExitCode::kMemory) << message;
    EXPECT_EQ(sentence_of(torch_error(message)).rfind("memory ran out", 0), 0u) << message;
  }
  EXPECT_NE(sentence_of(torch_error("DefaultCPUAllocator: can't allocate memory: you tried to "
                                    "allocate 8000 bytes."))
                .find("(8000 bytes were asked for at once)"),
            std::string::npos);
  const c10::OutOfMemoryError of_device(
      c10::SourceLocation{__func__, __FILE__, __LINE__},
      "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79.10 GiB of "
      "which 3.25 MiB is free. Of the allocated memory 70.00 GiB is allocated by PyTorch");
  EXPECT_EQ(exit_code_of(of_device), ExitCode::kMemory);
  EXPECT_NE(sentence_of(of_device).find(
                "memory ran out (20.00 MiB were asked for at once, on a device with 79.10 GiB of "
                "which 3.25 MiB were free)"),
            std::string::npos);
}

TEST(ExitCodes, SentencesNameFilesAndHoldNoControlCharacters) {
  const std::filesystem::filesystem_error error(
      "cannot create directory", "/proc/x",
      std::make_error_code(std::errc::no_such_file_or_directory));
  EXPECT_EQ(sentence_of(error), "cannot create directory /proc/x: No such file or directory");
  EXPECT_EQ(printable("a\nb\x1b[2J\x7f春"), "a\\x0ab\\x1b[2J\\x7f春");
}

}  // namespace
}  // namespace tupelo::exit_codes_test
