#include "launcher/exit_codes.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <boost/program_options/errors.hpp>
#include <filesystem>
#include <iterator>
#include <new>
#include <system_error>

#include "checkpoints/safetensors.h"
#include "data/errors.h"
#include "distributed/communicator.h"

namespace tupelo {
namespace {

// Only LibTorch's allocator for devices has a type of error for this. That for the CPU, page-locked
// memory, what CUDA's libraries allocate and a size that no integer holds have sentences.
bool is_out_of_memory(const std::exception& error) {
  constexpr const char* kSentences[] = {
      "can't allocate memory", "Storage size calculation overflowed", "CUDA error: out of memory",
      "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED"};
  if (dynamic_cast<const std::bad_alloc*>(&error)) return true;
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error)) return true;
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  if (torch_error == nullptr) return false;
  const std::string what = torch_error->what_without_backtrace();
  return std::any_of(std::begin(kSentences), std::end(kSentences), [&](const char* sentence) {
    return what.find(sentence) != std::string::npos;
  });
}

// What stands behind `before` and in front of `after`; empty where they do not.
std::string text_between(const std::string& text, const std::string& before,
                         const std::string& after) {
  const std::size_t found = text.find(before);
  if (found == std::string::npos) return "";
  const std::size_t first = found + before.size();
  const std::size_t end = text.find(after, first);
  return end == std::string::npos ? "" : text.substr(first, end - first);
}

// " (8000 bytes were asked for at once)", when the allocator says so; that of a device knows more.
std::string bytes_asked_for(const std::string& what) {
  const std::string on_device = text_between(what, "Tried to allocate ", ". ");
  const std::string capacity = text_between(what, "total capacity of ", " of which ");
  const std::string free = text_between(what, " of which ", " is free");
  if (!on_device.empty() && !capacity.empty() && !free.empty()) {
    return " (" + on_device + " were asked for at once, on a device with " + capacity +
           " of which " + free + " were free)";
  }
  const std::string on_host = text_between(what, "you tried to allocate ", " bytes");
  return on_host.empty() ? "" : " (" + on_host + " bytes were asked for at once)";
}

// "cannot create directory /proc/x: No such file or directory" instead of the library's "filesystem
// error: cannot create directory: No such file or directory [/proc/x]".
std::string sentence_of_files(const std::filesystem::filesystem_error& error) {
  const std::string prefix = "filesystem error: ";
  std::string action = error.what();
  if (action.starts_with(prefix)) action.erase(0, prefix.size());
  action.resize(std::min(action.size(), action.find(": ")));
  if (!error.path1().empty()) action.append(" ").append(error.path1().string());
  if (!error.path2().empty()) action.append(" to ").append(error.path2().string());
  return action.append(": ").append(error.code().message());
}

}  // namespace

ExitCode exit_code_of(const std::exception& error) {
  if (const auto* agreed = dynamic_cast<const AgreedError*>(&error)) return agreed->code();
  if (dynamic_cast<const CorpusError*>(&error)) return ExitCode::kCorrupt;
  if (dynamic_cast<const CorruptCheckpoint*>(&error)) return ExitCode::kCorrupt;
  if (dynamic_cast<const NumericsError*>(&error)) return ExitCode::kNumerics;
  if (dynamic_cast<const CommunicationTimeout*>(&error)) return ExitCode::kTimeout;
  if (dynamic_cast<const CommunicationError*>(&error)) return ExitCode::kCommunication;
  if (dynamic_cast<const std::system_error*>(&error)) return ExitCode::kStorage;
  if (is_out_of_memory(error)) return ExitCode::kMemory;
  if (dynamic_cast<const std::invalid_argument*>(&error)) return ExitCode::kUsage;
  if (dynamic_cast<const boost::program_options::error*>(&error)) return ExitCode::kUsage;
  return ExitCode::kInternal;
}

std::string printable(const std::string& text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string result;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte >= 0x20 && byte != 0x7f) {
      result += letter;
    } else {
      result += std::string("\\x") + kDigits[byte >> 4] + kDigits[byte & 15];
    }
  }
  return result;
}

std::string sentence_of(const std::exception& error) {
  if (is_out_of_memory(error)) {
    return "memory ran out" + bytes_asked_for(error.what()) +
           "; what decides its size: the shape of the model (hidden-size, layers, max-positions, "
           "--extend), the length of rows, and train.micro-batch";
  }
  if (const auto* torch_error = dynamic_cast<const c10::Error*>(&error)) {
    return torch_error->what_without_backtrace();
  }
  if (const auto* files = dynamic_cast<const std::filesystem::filesystem_error*>(&error)) {
    return sentence_of_files(*files);
  }
  return error.what();
}

}  // namespace tupelo
