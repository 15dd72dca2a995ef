// Work on files that nobody vouches for, in a process of its own.
#pragma once

#include <functional>
#include <string>

namespace tupelo {

// Runs `work` in a child process that can use 1 GiB more memory than this one, 120 s of processor
// time and no network, and can start no program and change no file. Returns what ended it when that
// was a signal ("signal 11"), else nothing: whatever `work` throws is for the caller to meet again
// when he does the same himself. Call it while there is one thread. Throws std::system_error.
std::string what_ends(const std::function<void()>& work);

}  // namespace tupelo
