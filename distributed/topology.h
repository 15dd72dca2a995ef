// Which ranks share a host, and who does what for whom. Internal to distributed/.
#pragma once

#include <vector>

namespace tupelo {

// Hosts are in the order of their first ranks, ranks of a host in rank order. `couriers`, as many
// on each host as the smallest one has ranks, are the first ranks of their hosts: those that
// exchange messages with other hosts, each with the courier of the same place.
class Topology {
 public:
  // `host_of_rank`: numbers that are the same for ranks of one host. `rank` is the own one.
  Topology(const std::vector<int>& host_of_rank, int rank);

  int host_count() const { return static_cast<int>(hosts_.size()); }
  int courier_count() const { return courier_count_; }
  bool has_shared_host() const;

  // By world rank.
  int host_of(int rank) const { return places_[static_cast<std::size_t>(rank)].host; }
  int place_of(int rank) const { return places_[static_cast<std::size_t>(rank)].place; }
  const std::vector<int>& ranks_of(int host) const {
    return hosts_[static_cast<std::size_t>(host)];
  }

  int world_size() const { return static_cast<int>(places_.size()); }
  int own_host() const { return host_of(rank_); }
  int own_place() const { return place_of(rank_); }
  // The ranks of the own host, and those at the own place of every host.
  const std::vector<int>& neighbours() const { return ranks_of(own_host()); }
  std::vector<int> peers() const;
  bool is_courier() const { return own_place() < courier_count_; }

 private:
  struct Place {
    int host = 0;
    int place = 0;
  };

  int rank_;
  int courier_count_ = 0;
  std::vector<std::vector<int>> hosts_;
  std::vector<Place> places_;
};

}  // namespace tupelo
