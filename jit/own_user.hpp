// Takes the rights of the user who runs Kiln away from a process that works for somebody else: a job of the build farm.
// jit/sandbox.hpp is the other half.
#pragma once

#include <filesystem>

namespace kiln {

// Changes the calling process, and the threads and processes that it starts, for good. Call it while the process has
// one thread.
//
//   root      The process becomes a user that nobody else is: the id is 0x60000000 plus its process id, or 65534 where
//             the system has no such ids (a container with a map of users). It has no groups and no capabilities.
//             `folder` and all that is in it is given to that user; links in it are replaced by copies of their
//             targets. Throws error{io} if the process cannot become another user.
//   others    The process moves to a user namespace, in which it keeps its id and has no capabilities. Where the system
//             forbids that, nothing changes.
//
// Both get a network without interfaces, and System V and POSIX message queues of their own, where the system allows
// it: Landlock alone does not forbid UDP.
void enter_own_user(const std::filesystem::path& folder);

// Throws error{usage} where another user could not reach the folders of jobs below `folder`: if this process is root's
// and a folder on the way does not let others through.
void check_own_user_folder(const std::filesystem::path& folder);

}  // namespace kiln
