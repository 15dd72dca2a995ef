// Ranks as threads of the test process that meet at a store over TCP.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "distributed/rendezvous.h"

namespace tupelo::testing {

// A port of 127.0.0.1 that nobody listens on.
inline std::uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ::bind(socket, reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(socket);
  return ntohs(address.sin_port);
}

inline RankPlace place_of(int rank, int world_size, std::uint16_t port) {
  RankPlace place;
  place.rank = place.local_rank = rank;
  place.world_size = world_size;
  place.address = "127.0.0.1";
  place.port = port;
  return place;
}

// What each rank threw (null: nothing), by rank.
inline std::vector<std::exception_ptr> run_store_ranks(
    int world_size, const std::function<void(Rendezvous&)>& body) {
  const std::uint16_t port = free_port();
  std::vector<std::unique_ptr<Rendezvous>> all;
  for (int rank = 0; rank < world_size; ++rank) {
    all.push_back(
        std::make_unique<Rendezvous>(place_of(rank, world_size, port), std::chrono::seconds(60)));
  }
  std::vector<std::exception_ptr> failures(all.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    threads.emplace_back([&body, &failure = failures[rank], &own = *all[rank]] {
      try {
        body(own);
      } catch (...) {
        failure = std::current_exception();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  while (!all.empty()) all.pop_back();  // rank 0 waits for the others
  return failures;
}

}  // namespace tupelo::testing
