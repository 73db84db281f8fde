// The tuning records of one class of devices: files in `records/` of the cache folder, the same folder of read-only
// layers, and the hints that travel inside a `.kiln` file. What is found in several places is merged.
//
// Like the cache it never throws into a run: what cannot be read counts as not there, what cannot be written is not
// kept; the first problem is warned about. A record of a later version is left alone. Any thread may call any function;
// processes may share a folder, files appear whole by rename. Two that tune the same kernel at the same moment may lose
// the work of one, never more.
#pragma once

#include <cstddef>
#include <filesystem>
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

// Of this build, for kernels of a family.
compiler_identity this_compiler(target_family family);

struct tuning_records_options {
  std::filesystem::path folder = {};               // of the cache; empty: nothing is kept
  std::vector<std::filesystem::path> layers = {};  // of the cache
  std::string device_class;
  compiler_identity compiler;
  std::string hints = {};        // a file's section, see hints_text
  file_system* files = nullptr;  // not owned; null: the machine's own
};

class tuning_records {
 public:
  explicit tuning_records(tuning_records_options options);
  tuning_records(const tuning_records&) = delete;

  const std::string& device_class() const { return options_.device_class; }
  const compiler_identity& compiler() const { return options_.compiler; }

  std::optional<tuning_record> find(const std::string& payload, const std::vector<shape>& inputs,
                                    const std::vector<shape>& outputs) const;
  // The configuration to use: what won with this compiler, else what won with the newest other one, else the default.
  kernel_configuration winner(const std::string& payload, const std::vector<shape>& inputs,
                              const std::vector<shape>& outputs) const;
  void store(const tuning_record& record) const;

  // What was found out about graph replay of a program (launched_program_hash), on this class of devices and with this
  // compiler's kernels.
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

// Records as the section `tuning_hints` of a `.kiln` file, and back. Reading throws error{corrupted, newer_version}.
std::string hints_text(const std::vector<tuning_record>& records);
std::vector<tuning_record> parse_hints(std::string_view text);

// What becomes of a record's file that arrives where another may be (transfer_options::merge_record): kernels' records
// are merged, and of two decisions about a graph the machine's own stays. Throws error{corrupted, newer_version} for
// what is no record of that name.
std::optional<std::vector<std::byte>> merge_record_files(const std::string& name, std::span<const std::byte> arriving,
                                                         std::span<const std::byte> there);

}  // namespace kiln
