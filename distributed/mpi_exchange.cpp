#include "distributed/mpi_exchange.h"

#include <cstdint>
#include <memory>
#include <set>

#include "distributed/mpi_check.h"

namespace tupelo {
MpiExchange::MpiExchange(const Runtime& runtime, Patience& patience)
    : rank_(runtime.rank()), world_size_(runtime.world_size()), patience_(patience) {
  duplicate_world(runtime);
}

void MpiExchange::duplicate_world(const Runtime& runtime) {
  patience_.begin("creation of the communicator", 0);
  auto duplicate = std::make_unique<MPI_Comm>(MPI_COMM_NULL);
  requests_.resize(1);
  messages_.resize(1);
  open_count_ = 1;
  try {
    check_mpi(MPI_Comm_idup(MPI_COMM_WORLD, duplicate.get(), requests_.data()), "MPI_Comm_idup");
    poll_until_complete(Patience::Wait::kForTheCulprit);
    check_mpi(MPI_Comm_set_errhandler(*duplicate, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  } catch (...) {
    // MPI may still write the handle.
    static_cast<void>(duplicate.release());
    runtime.mark_broken();
    throw;
  }
  communicator_ = *duplicate;
}

MpiExchange::~MpiExchange() {
  if (!failed_ && !patience_.is_abandoned()) MPI_Comm_free(&communicator_);
}

void MpiExchange::begin(int kind) {
  // MPI guarantees 15 bits of tag.
  constexpr std::uint64_t kSequences = 4096;
  tag_ = static_cast<int>(patience_.sequence() % kSequences) * 8 + kind;
}

void MpiExchange::exchange(const std::vector<MpiMessage>& sends,
                           const std::vector<MpiMessage>& receives, Patience::Wait wait) {
  requests_.clear();
  messages_.clear();
  try {
    for (const auto& message : receives) post(message, false);
    receive_count_ = requests_.size();
    for (const auto& message : sends) post(message, true);
    open_count_ = requests_.size();
    poll_until_complete(wait);
  } catch (...) {
    failed_ = true;
    throw;
  }
}

void MpiExchange::post(const MpiMessage& message, bool is_send) {
  messages_.push_back(message);
  requests_.push_back(MPI_REQUEST_NULL);
  const int bytes = static_cast<int>(message.bytes);
  const int result = is_send ? MPI_Isend(message.data, bytes, MPI_BYTE, message.peer, tag_,
                                         communicator_, &requests_.back())
                             : MPI_Irecv(message.data, bytes, MPI_BYTE, message.peer, tag_,
                                         communicator_, &requests_.back());
  check_mpi(result, is_send ? "MPI_Isend" : "MPI_Irecv");
}

void MpiExchange::poll_until_complete(Patience::Wait wait) {
  const auto is_complete = [&] {
    if (open_count_ > 0) complete_some();
    return open_count_ == 0;
  };
  patience_.wait_until(
      is_complete, [&] { return unanswered(); }, wait);
}

void MpiExchange::complete_some() {
  const int count = static_cast<int>(requests_.size());
  completed_.resize(requests_.size());
  statuses_.resize(requests_.size());
  int done = 0;
  const int result =
      MPI_Testsome(count, requests_.data(), &done, completed_.data(), statuses_.data());
  if (result != MPI_SUCCESS && result != MPI_ERR_IN_STATUS) check_mpi(result, "MPI_Testsome");
  if (done == MPI_UNDEFINED) return;
  for (int i = 0; i < done; ++i) {
    const int error = result == MPI_ERR_IN_STATUS ? statuses_[static_cast<std::size_t>(i)].MPI_ERROR
                                                  : MPI_SUCCESS;
    check_arrival(static_cast<std::size_t>(completed_[static_cast<std::size_t>(i)]),
                  statuses_[static_cast<std::size_t>(i)], error);
  }
  open_count_ -= static_cast<std::size_t>(done);
}

void MpiExchange::check_arrival(std::size_t request, const MPI_Status& status, int result) const {
  const auto& message = messages_[request];
  const std::string peer = "rank " + std::to_string(message.peer);
  int error_class = MPI_SUCCESS;
  if (result != MPI_SUCCESS) MPI_Error_class(result, &error_class);
  int bytes = static_cast<int>(message.bytes);
  if (request < receive_count_ && result == MPI_SUCCESS) MPI_Get_count(&status, MPI_BYTE, &bytes);
  if (error_class == MPI_ERR_TRUNCATE || bytes != static_cast<int>(message.bytes)) {
    throw CommunicationError(patience_.where() + " failed: " + peer + " sent " +
                             (error_class == MPI_ERR_TRUNCATE ? "more" : "fewer") + " than the " +
                             std::to_string(message.bytes) +
                             " bytes expected, so it is in another collective");
  }
  if (result != MPI_SUCCESS) {
    throw CommunicationError(patience_.where() + " failed: no connection to " + peer + ": " +
                             mpi_error_text(result));
  }
}

std::string MpiExchange::unanswered() const {
  if (communicator_ == MPI_COMM_NULL) return "some rank did not join";
  std::set<int> silent;
  std::set<int> deaf;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    (i < receive_count_ ? silent : deaf).insert(messages_[i].peer);
  }
  const bool receiving = !silent.empty();
  std::string text = receiving ? "nothing came from rank" : "nothing was taken by rank";
  const char* separator = " ";
  for (const int peer : receiving ? silent : deaf) {
    text += separator + std::to_string(peer);
    separator = ", ";
  }
  return text;
}

}  // namespace tupelo
