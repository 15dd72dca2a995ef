#include "launcher/contained.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <system_error>
#include <vector>

namespace tupelo {
namespace {

constexpr rlim_t kMoreMemoryBytes = rlim_t{1} << 30;
constexpr rlim_t kProcessorSeconds = 120;

// What reading a file never needs; it fails with EPERM.
constexpr std::uint32_t kForbidden[] = {
    SYS_execve,    SYS_execveat, SYS_fork,     SYS_vfork,     SYS_ptrace,   SYS_socket,
    SYS_connect,   SYS_bind,     SYS_kill,     SYS_tgkill,    SYS_rename,   SYS_renameat,
    SYS_renameat2, SYS_unlink,   SYS_unlinkat, SYS_rmdir,     SYS_mkdir,    SYS_mkdirat,
    SYS_link,      SYS_linkat,   SYS_symlink,  SYS_symlinkat, SYS_truncate, SYS_ftruncate,
    SYS_chmod,     SYS_fchmod,   SYS_fchmodat, SYS_chown,     SYS_fchownat, SYS_mount,
    SYS_creat};

void limit(__rlimit_resource resource, rlim_t most) {
  struct rlimit now;
  if (::getrlimit(resource, &now) != 0) return;
  const rlim_t value = std::min(most, now.rlim_max);
  const struct rlimit then = {value, value};
  ::setrlimit(resource, &then);
}

rlim_t address_space_bytes() {
  std::ifstream statistics("/proc/self/statm");
  rlim_t pages = 0;
  if (!(statistics >> pages)) return RLIM_INFINITY - kMoreMemoryBytes;
  return pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}

sock_filter statement(std::uint16_t code, std::uint32_t value) { return BPF_STMT(code, value); }
sock_filter jump(std::uint32_t value, std::uint8_t if_equal, std::uint8_t otherwise) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, if_equal, otherwise);
}

// Where the system knows no such filters, the limits must do.
void forbid_calls() {
  constexpr std::uint32_t kAllow = SECCOMP_RET_ALLOW, kRefuse = SECCOMP_RET_ERRNO | EPERM;
  std::vector<sock_filter> program = {
      statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const std::uint32_t call : kForbidden) {
    program.push_back(jump(call, 0, 1));
    program.push_back(statement(BPF_RET | BPF_K, kRefuse));
  }
  program.push_back(statement(BPF_RET | BPF_K, kAllow));
  const sock_fprog filter = {static_cast<unsigned short>(program.size()), program.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return;
  ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

[[noreturn]] void run_contained(const std::function<void()>& work, rlim_t memory) {
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_CPU, kProcessorSeconds);
  limit(RLIMIT_AS, memory);
  forbid_calls();
  try {
    work();
  } catch (...) {
  }
  ::_exit(0);
}

}  // namespace

std::string what_ends(const std::function<void()>& work) {
  const rlim_t memory = address_space_bytes() + kMoreMemoryBytes;
  const pid_t child = ::fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "cannot fork");
  if (child == 0) run_contained(work, memory);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "cannot wait");
  }
  return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status)) : std::string();
}

}  // namespace tupelo
