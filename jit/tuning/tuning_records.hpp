// The tuning records of one class of devices. They come from files in `records/` of the cache folder, from the same
// folder of read-only layers, and from the hints inside a `.kiln` file. Records that are found in several places are
// merged.
//
// Like the cache it never throws into a run: an unreadable record counts as absent, and a record that cannot be written
// is lost. Only the first problem is logged as a warning. A record of a later version is left alone. Any thread may
// call any function. Processes may share a folder, because files are replaced atomically by rename. If two processes
// tune the same kernel at the same moment, the result of one may be lost.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jit/cache/file_system.hpp"
#include "jit/tuning/tuning_record.hpp"
#include "runtime/graph/graph_decision.hpp"

namespace kiln {

// The compiler of this build, for targets of a family.
compiler_identity this_compiler(target_family family);

struct tuning_records_options {
  std::filesystem::path folder = {};               // of the cache; empty: nothing is stored
  std::vector<std::filesystem::path> layers = {};  // read-only layers of the cache
  std::string device_class;
  compiler_identity compiler;
  std::string hints = {};                             // the section `tuning_hints` of a file, see tuning_hints.hpp
  std::function<void(const std::string&)> warn = {};  // null: spdlog
  file_system* files = nullptr;                       // not owned; null: posix_file_system()
};

class tuning_records {
 public:
  explicit tuning_records(tuning_records_options options);
  tuning_records(const tuning_records&) = delete;

  const std::string& device_class() const { return options_.device_class; }
  const compiler_identity& compiler() const { return options_.compiler; }

  std::optional<tuning_record> find(const std::string& payload, const std::vector<shape>& inputs,
                                    const std::vector<shape>& outputs) const;
  // The configuration to use: the winner of this compiler's session, else of the newest other compiler's, else the
  // default.
  kernel_configuration winner(const std::string& payload, const std::vector<shape>& inputs,
                              const std::vector<shape>& outputs) const;
  void store(const tuning_record& record) const;

  // The graph replay decision for a program (launched_program_hash) on this class of devices.
  std::optional<graph_decision> find_graph(const std::string& program_hash) const;
  void store_graph(const std::string& program_hash, const graph_decision& decision) const;

 private:
  template <class Parse>
  void read(const std::string& name, Parse parse) const;
  void write(const std::string& name, const std::string& text) const;
  void problem(const std::string& what) const;
  tuning_records_options options_;
  file_system& files_;
  std::map<content_hash, tuning_record> hints_;
  mutable std::mutex mutex_;
  mutable bool warned_ = false;
};

// Merges an arriving record file with the one that is there, if any (transfer_options::merge_record). Returns the bytes
// to write, or nothing if the file that is there stays. Kernel records are merged; an existing graph decision stays.
// Throws error{corrupted, newer_version} if `arriving` is not a record of that name.
std::optional<std::vector<std::byte>> merge_record_files(const std::string& name, std::span<const std::byte> arriving,
                                                         std::span<const std::byte> there);

}  // namespace kiln
