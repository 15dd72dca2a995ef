#include "launcher/exit_codes.h"

#include <c10/util/Exception.h>

#include <boost/program_options/errors.hpp>
#include <system_error>

#include "checkpoints/safetensors.h"
#include "data/errors.h"
#include "distributed/communicator.h"

namespace tupelo {

ExitCode exit_code_of(const std::exception& error) {
  if (const auto* agreed = dynamic_cast<const AgreedError*>(&error)) return agreed->code();
  if (dynamic_cast<const CorpusError*>(&error)) return ExitCode::kCorrupt;
  if (dynamic_cast<const CorruptCheckpoint*>(&error)) return ExitCode::kCorrupt;
  if (dynamic_cast<const NumericsError*>(&error)) return ExitCode::kNumerics;
  if (dynamic_cast<const CommunicationTimeout*>(&error)) return ExitCode::kTimeout;
  if (dynamic_cast<const CommunicationError*>(&error)) return ExitCode::kCommunication;
  if (dynamic_cast<const std::system_error*>(&error)) return ExitCode::kStorage;
  if (dynamic_cast<const std::invalid_argument*>(&error)) return ExitCode::kUsage;
  if (dynamic_cast<const boost::program_options::error*>(&error)) return ExitCode::kUsage;
  return ExitCode::kInternal;
}

std::string sentence_of(const std::exception& error) {
  if (const auto* torch_error = dynamic_cast<const c10::Error*>(&error)) {
    return torch_error->what_without_backtrace();
  }
  return error.what();
}

}  // namespace tupelo
