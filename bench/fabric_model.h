// How long a collective takes: a latency for each hop of its way and a time for each byte, over the
// links inside hosts and those between them. Formulas and sources: docs/scaling.md.
#pragma once

#include <limits>
#include <string>
#include <vector>

namespace tupelo::bench {

// Links of one kind, as one rank sees them.
struct Links {
  double ring_hop_seconds = 0;  // from one rank of a ring to the next, no bytes
  double tree_hop_seconds = 0;  // from one level of a tree to the next
  // Each way at once, of one rank. Infinite where bytes cost nothing.
  double bytes_per_second = std::numeric_limits<double>::infinity();
};

struct Fabric {
  std::string name;
  int ranks_per_host = 1;     // that run on every full host
  double launch_seconds = 0;  // once for every collective
  Links inside;               // between ranks of one host
  Links between;              // between hosts; every rank has such a link of its own
};

// Ranks that talk to each other: equally many on each of `hosts` hosts.
struct Group {
  int hosts = 1;
  int per_host = 1;
  int ranks() const { return hosts * per_host; }
};

// The groups of a run of `ranks`: all of them; those of one host; those that have the same place on
// all hosts. Throw std::invalid_argument unless `ranks` fit on one host or fill several.
Group world_group(int ranks, const Fabric& fabric);
Group host_group(int ranks, const Fabric& fabric);
Group replica_group(int ranks, const Fabric& fabric);

enum class Collective { kAllReduce, kReduceScatter, kAllGather };
// kTree is for sums alone (other collectives take the ring): chains inside hosts, a tree between
// them. kBest is the faster of the two.
enum class Algorithm { kRing, kTree, kBest };

// Hops that follow one another, and bytes that the busiest link of each kind carries one way for
// each byte of the whole buffer.
struct Way {
  double inside_hops = 0;
  double between_hops = 0;
  double inside_share = 0;
  double between_share = 0;
};
Way way_of(Collective collective, const Group& group, Algorithm algorithm);  // kRing or kTree

// Of a buffer of `bytes` (the whole one, of which a reduce-scatter leaves and an all-gather takes a
// part on each rank). Chunks follow each other through both kinds of links, so the slower kind
// decides the time for bytes; latencies add up. 0 for a group of one.
double collective_seconds(Collective collective, const Group& group, double bytes,
                          const Fabric& fabric, Algorithm algorithm = Algorithm::kBest);

struct Measurement {
  double bytes = 0;
  double seconds = 0;
};

// seconds = alpha + beta * bytes.
struct AlphaBeta {
  double alpha_seconds = 0;
  double beta_seconds_per_byte = 0;
  double worst_relative_error = 0;  // over the measurements
};

// Least squares of relative errors, so that small messages count as much as large ones; neither
// number is negative. Throws std::invalid_argument unless two sizes or more were measured, all in
// more than no time.
AlphaBeta fit_alpha_beta(const std::vector<Measurement>& measurements);

// `fabric` with what sums over `group` were measured to take. A group on one host says what its own
// links are like, and its latency stands for everything but bytes. A group on several hosts says
// what those between them are like, when `fabric.inside` is right.
Fabric calibrated(Fabric fabric, const Group& group, const AlphaBeta& all_reduce);

// The fabric `name`. Throws std::invalid_argument that lists those there are.
Fabric named_fabric(const std::string& name);

}  // namespace tupelo::bench
