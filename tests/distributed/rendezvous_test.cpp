#include "distributed/rendezvous.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <future>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "tests/distributed/store_ranks.h"

namespace tupelo {
namespace {

using testing::run_store_ranks;

const std::vector<std::string> kVariables = {"RANK",
                                             "WORLD_SIZE",
                                             "LOCAL_RANK",
                                             "MASTER_ADDR",
                                             "MASTER_PORT",
                                             "TORCHELASTIC_USE_AGENT_STORE",
                                             "TORCHELASTIC_RUN_ID"};

// The environment of torchrun with changes; what was there before comes back.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& variables) {
    for (const std::string& name : kVariables) {
      if (const char* value = std::getenv(name.c_str())) before_[name] = value;
      unsetenv(name.c_str());
    }
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const std::string& name : kVariables) unsetenv(name.c_str());
    for (const auto& [name, value] : before_) setenv(name.c_str(), value.c_str(), 1);
  }

 private:
  std::map<std::string, std::string> before_;
};

std::map<std::string, std::string> torchrun() {
  return {{"RANK", "5"},
          {"WORLD_SIZE", "8"},
          {"LOCAL_RANK", "1"},
          {"MASTER_ADDR", "node0"},
          {"MASTER_PORT", "29500"}};
}

std::string refusal(const std::map<std::string, std::string>& variables) {
  const Environment environment(variables);
  try {
    RankPlace::from_environment();
    return "";
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

TEST(RankPlace, IsWhatTheLauncherSays) {
  const Environment environment(torchrun());
  EXPECT_TRUE(RankPlace::is_told());
  const RankPlace place = RankPlace::from_environment();
  EXPECT_EQ(place.rank, 5);
  EXPECT_EQ(place.world_size, 8);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.address, "node0");
  EXPECT_EQ(place.port, 29500);
  EXPECT_FALSE(place.store_is_there);
}

TEST(RankPlace, KnowsTorchrun) {
  auto variables = torchrun();
  {
    const Environment by_hand(variables);
    EXPECT_FALSE(RankPlace::is_told_by_torchrun());
  }
  {
    const Environment alone({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"TORCHELASTIC_RUN_ID", "none"}});
    EXPECT_TRUE(RankPlace::is_told_by_torchrun());
    EXPECT_FALSE(RankPlace::is_told());
  }
  variables["TORCHELASTIC_RUN_ID"] = "none";
  const Environment environment(variables);
  EXPECT_TRUE(RankPlace::is_told_by_torchrun());
}

TEST(RankPlace, IsNoneForAProcessAlone) {
  for (const auto& variables : {std::map<std::string, std::string>{},
                                {{"RANK", "0"}, {"WORLD_SIZE", "1"}},
                                {{"WORLD_SIZE", "4"}}}) {
    const Environment environment(variables);
    EXPECT_FALSE(RankPlace::is_told());
  }
}

TEST(RankPlace, NamesTheVariableThatIsWrong) {
  for (const auto& [name, value, words] :
       {std::tuple("RANK", "8", "RANK=8 is out of range; valid: 0 to 7"),
        {"RANK", "x", "RANK=x is out of range"},
        {"WORLD_SIZE", "many", "WORLD_SIZE=many"},
        {"LOCAL_RANK", "6", "LOCAL_RANK=6 is out of range; valid: 0 to 5"},
        {"MASTER_PORT", "70000", "MASTER_PORT=70000 is out of range; valid: 1 to 65535"}}) {
    auto variables = torchrun();
    variables[name] = value;
    EXPECT_NE(refusal(variables).find(words), std::string::npos) << refusal(variables);
  }
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK"}) {
    auto variables = torchrun();
    variables.erase(name);
    EXPECT_NE(refusal(variables).find(std::string(name) + " is not"), std::string::npos) << name;
  }
}

// As torchrun's agent does; rank 0 is a client like the others.
c10::intrusive_ptr<c10d::TCPStore> agents_store(std::uint16_t port) {
  c10d::TCPStoreOptions options;
  options.port = port;
  options.isServer = true;
  options.waitWorkers = false;
  return c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
}

TEST(Rendezvous, TheLauncherMayKeepTheStore) {
  const std::uint16_t port = testing::free_port();
  const auto agent = agents_store(port);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([rank, port] {
      RankPlace place = testing::place_of(rank, 3, port);
      place.store_is_there = true;
      Rendezvous rendezvous(place, std::chrono::seconds(60));
      const auto communicator = rendezvous.make_communicator({});
      EXPECT_EQ(communicator->sum(static_cast<double>(rank)), 3);
      EXPECT_EQ(communicator->broadcast("from " + std::to_string(rank), 1), "from 1");
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

// What a rank hears from rank 0, which says `word`.
std::string heard(int rank, std::uint16_t port, const std::string& word) {
  RankPlace place = testing::place_of(rank, 2, port);
  place.store_is_there = true;
  Rendezvous rendezvous(place, std::chrono::seconds(60));
  return rendezvous.make_communicator({})->broadcast(rank == 0 ? word : "", 0);
}

// The store that an agent keeps still holds what ranks said that it started before; whoever comes
// first has time enough to find it.
TEST(Rendezvous, RanksThatAreStartedAnewDoNotHearThoseBefore) {
  const std::uint16_t port = testing::free_port();
  const auto agent = agents_store(port);
  for (int attempt = 0; attempt < 3; ++attempt) {
    const std::string word = "attempt " + std::to_string(attempt);
    const int early = attempt % 2;
    auto first = std::async(std::launch::async, heard, early, port, word);
    first.wait_for(std::chrono::milliseconds(attempt == 0 ? 0 : 300));
    EXPECT_EQ(heard(1 - early, port, word), word);
    EXPECT_EQ(first.get(), word);
  }
}

// What a rank that died while ranks met has left does not stand for the one after it.
TEST(Rendezvous, ARankThatDiesWhileRanksMeetIsNotTakenForTheNext) {
  const std::uint16_t port = testing::free_port();
  const auto agent = agents_store(port);
  c10d::Store& store = *agent;
  store.set("tupelo/hello/1", "a dead rank");
  store.set("tupelo/welcome/a dead rank", "an attempt");
  auto first = std::async(std::launch::async, heard, 0, port, "now");
  first.wait_for(std::chrono::milliseconds(300));
  EXPECT_EQ(heard(1, port, ""), "now");
  EXPECT_EQ(first.get(), "now");
}

TEST(Rendezvous, WhoDoesNotComeToTheMeetingIsNamed) {
  const std::uint16_t port = testing::free_port();
  const auto agent = agents_store(port);
  for (const auto& [rank, missing] : {std::pair(0, "ranks 1, 2"), {1, "rank 0"}}) {
    RankPlace place = testing::place_of(rank, 3, port);
    place.store_is_there = true;
    Rendezvous rendezvous(place, std::chrono::seconds(60));
    try {
      rendezvous.make_communicator({.timeout = std::chrono::milliseconds(200)});
      FAIL() << "rank " << rank;
    } catch (const CommunicationTimeout& error) {
      EXPECT_NE(std::string(error.what()).find(std::string("nothing came from ") + missing),
                std::string::npos)
          << error.what();
    }
  }
}

// A rank that is slower still reads in it.
TEST(Rendezvous, RankZeroKeepsItsStoreUntilTheOthersEnd) {
  const std::uint16_t port = testing::free_port();
  std::promise<void> met;
  auto first = std::async(std::launch::async, [port, &met] {
    Rendezvous rendezvous(testing::place_of(0, 2, port), std::chrono::seconds(60));
    rendezvous.make_communicator({})->barrier();
    met.set_value();
  });
  {
    Rendezvous rendezvous(testing::place_of(1, 2, port), std::chrono::seconds(60));
    rendezvous.make_communicator({})->barrier();
    met.get_future().wait();
    EXPECT_EQ(first.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  }
  EXPECT_EQ(first.wait_for(std::chrono::seconds(5)), std::future_status::ready);
}

TEST(Rendezvous, GroupsDoNotHearEachOther) {
  for (const auto& failure : run_store_ranks(4, [](Rendezvous& rendezvous) {
         const int rank = rendezvous.place().rank;
         const std::vector<int> members = {rank % 2, rank % 2 + 2};
         const auto group = rendezvous.make_communicator({.members = members});
         EXPECT_EQ(group->rank(), rank / 2);
         EXPECT_EQ(group->world_size(), 2);
         EXPECT_EQ(group->sum(static_cast<double>(rank)), members[0] + members[1]);
       })) {
    if (failure) std::rethrow_exception(failure);
  }
}

TEST(Rendezvous, ARankThatStaysAwayIsNamed) {
  const auto failures = run_store_ranks(3, [](Rendezvous& rendezvous) {
    const auto communicator =
        rendezvous.make_communicator({.timeout = std::chrono::milliseconds(300)});
    if (communicator->rank() == 2) return;
    communicator->barrier();
  });
  EXPECT_FALSE(failures[2]);
  for (const std::size_t rank : {0, 1}) {
    try {
      ASSERT_TRUE(failures[rank]);
      std::rethrow_exception(failures[rank]);
    } catch (const CommunicationTimeout& error) {
      EXPECT_NE(std::string(error.what()).find("nothing came from rank 2"), std::string::npos)
          << error.what();
    }
  }
}

TEST(Rendezvous, RanksThatDoDifferentThingsAreTold) {
  const auto failures = run_store_ranks(2, [](Rendezvous& rendezvous) {
    const auto communicator = rendezvous.make_communicator({.timeout = std::chrono::seconds(20)});
    if (communicator->rank() == 0) {
      communicator->barrier();
    } else {
      communicator->sum(1.0);
    }
  });
  for (const auto& failure : failures) {
    ASSERT_TRUE(failure);
    EXPECT_THROW(std::rethrow_exception(failure), CommunicationError);
  }
}

TEST(Rendezvous, SaysWhereItCannotListenOrReach) {
  RankPlace first = testing::place_of(0, 2, testing::free_port());
  first.address = "192.0.2.77";  // documentation's: nobody's
  try {
    Rendezvous rendezvous(first, std::chrono::milliseconds(500));
    ADD_FAILURE();
  } catch (const CommunicationError& error) {
    EXPECT_NE(std::string(error.what()).find("cannot listen on 192.0.2.77:"), std::string::npos)
        << error.what();
  }
  const RankPlace second = testing::place_of(1, 2, testing::free_port());
  try {
    Rendezvous rendezvous(second, std::chrono::milliseconds(500));
    ADD_FAILURE();
  } catch (const CommunicationError& error) {
    EXPECT_NE(std::string(error.what()).find("rank 1 does not reach rank 0 at 127.0.0.1:"),
              std::string::npos)
        << error.what();
  }
}

// Another address of this host is not listened on.
TEST(Rendezvous, ListensOnItsAddressAlone) {
  const std::uint16_t port = testing::free_port();
  const Rendezvous rendezvous(testing::place_of(0, 2, port), std::chrono::seconds(5));
  const auto reaches = [&](const char* address) {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    inet_pton(AF_INET, address, &to.sin_addr);
    const bool connected = ::connect(socket, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
    ::close(socket);
    return connected;
  };
  EXPECT_TRUE(reaches("127.0.0.1"));
  EXPECT_FALSE(reaches("127.0.0.2"));
}

}  // namespace
}  // namespace tupelo
