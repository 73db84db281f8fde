#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "ir/container/container.hpp"
#include "ir/error.hpp"
#include "jit/cache/folder.hpp"
#include "jit/cache/maintenance.hpp"
#include "jit/cache/transfer.hpp"
#include "jit/compare_cached.hpp"
#include "jit/compile_bytecode.hpp"
#include "jit/fallback_target.hpp"
#include "jit/targets.hpp"
#include "jit/tuning/tuning_records.hpp"
#include "tools/command.hpp"
#include "tools/counts.hpp"
#include "tools/model_options.hpp"
#include "tools/progress.hpp"
#include "tools/worker_choice.hpp"

namespace kiln::tools {
namespace {

using json = nlohmann::ordered_json;

struct options {
  cache_choice cache;
  std::string file, device = "host", target = "native", archive, key_file;
  std::vector<std::string> dims;
  std::uint64_t max_bytes = cache_options{}.max_bytes;
  bool remove = false, recompile = false;
};

std::filesystem::path folder_of(const options& o) {
  auto folder = default_cache_options(o.cache.folder).folder;
  if (folder.empty()) throw error(error_kind::usage, "no cache folder: give --cache DIR or set KILN_CACHE_DIR");
  return folder;
}

int stats(const options& o, const output_options& output) {
  auto folder = folder_of(o);
  cache_statistics s = std::filesystem::exists(folder) ? cache_stats(folder) : cache_statistics{};
  json document{{"folder", folder.string()},  {"entries", s.kernels + s.prepared},
                {"kernels", s.kernels},       {"kernel_bytes", s.kernel_bytes},
                {"prepared", s.prepared},     {"prepared_bytes", s.prepared_bytes},
                {"unreadable", s.unreadable}, {"temporaries", s.temporaries},
                {"records", s.records},       {"by_target", s.by_target}};
  output.print(document, [&] {
    print(
        "{}\n  {}, {:.2f} MB\n  {} packed weights, {:.2f} MB\n  {}\n  {} unreadable, {} "
        "temporaries\n",
        folder.string(), counted(s.kernels, "kernel"), static_cast<double>(s.kernel_bytes) / 1e6, s.prepared,
        static_cast<double>(s.prepared_bytes) / 1e6, counted(s.records, "tuning record"), s.unreadable, s.temporaries);
  });
  return 0;
}

int verify(const options& o, const output_options& output) {
  auto folder = folder_of(o);
  cache_verification v = verify_cache(folder, o.remove);
  auto bad = json::array();
  for (const damaged_entry& d : v.damaged) bad.push_back({{"name", d.name}, {"why", d.why}});
  output.print({{"folder", folder.string()},
                {"checked", v.checked},
                {"bad", v.damaged.size()},
                {"removed", o.remove},
                {"damaged", bad}},
               [&] {
                 for (const damaged_entry& d : v.damaged)
                   print("{}: {}{}\n", d.name, d.why, o.remove ? ", removed" : "");
                 print("{} entries checked, {} damaged\n", v.checked, v.damaged.size());
               });
  return v.damaged.empty() || o.remove ? 0 : 1;
}

// Compiles every kernel of a file that the cache has again, for a device or a target, and compares.
int recompile(const options& o, const output_options& output) {
  program bound = read_program(o.file, consent_of(o.cache)).bind(parse_bindings(o.dims));
  auto cache = open_cache(o.cache, embedded_entries::read(o.file));
  jit_options jit;
  std::optional<chosen_device> chosen;
  if (o.device == "host") jit.target = find_target(o.target);
  else jit = chosen.emplace(choose_device(o.device, o.target)).compiling();
  jit.cache = cache.get();
  jit.workers = workers_for_files({});
  progress_bar progress("compiling", output);
  jit.progress = [&](std::size_t done, std::size_t total) { progress.update(done, total); };
  cache_comparison c = compare_with_cache(bound, jit, o.remove);
  progress.finish();
  auto differ = json::array();
  for (const cache_mismatch& m : c.mismatches)
    differ.push_back({{"symbol", m.symbol}, {"key", m.key}, {"cached", m.cached}, {"compiled", m.compiled}});
  output.print({{"file", o.file},
                {"target", jit.target.name},
                {"compared", c.compared},
                {"absent", c.absent},
                {"differ", differ}},
               [&] {
                 for (const cache_mismatch& m : c.mismatches)
                   print("{} ({}): the cache has {}, the compiler makes {}{}\n", m.key, m.symbol, m.cached, m.compiled,
                         o.remove ? ", replaced" : "");
                 print("{} kernels compiled again, {} differ; {} are not in the cache\n", c.compared,
                       c.mismatches.size(), c.absent);
               });
  return c.mismatches.empty() || o.remove ? 0 : 1;
}

int gc(const options& o, const output_options& output) {
  auto folder = folder_of(o);
  eviction e = collect_cache(folder, o.max_bytes);
  output.print({{"folder", folder.string()},
                {"removed", e.removed},
                {"removed_bytes", e.removed_bytes},
                {"bytes_left", e.bytes_left}},
               [&] {
                 print("{} entries ({:.2f} MB) removed, {:.2f} MB left\n", e.removed,
                       static_cast<double>(e.removed_bytes) / 1e6, static_cast<double>(e.bytes_left) / 1e6);
               });
  return 0;
}

int explain(const options& o, const output_options& output) {
  cache_options layers = default_cache_options(o.cache.folder);
  std::vector<std::filesystem::path> folders{layers.folder};
  folders.insert(folders.end(), layers.read_only_layers.begin(), layers.read_only_layers.end());
  const native_consent consent = consent_of(o.cache);
  // A missing folder has no hits, and a layer that a run would refuse has none either.
  std::erase_if(folders, [&](const auto& folder) {
    if (!std::filesystem::exists(folder)) return true;
    return folder != layers.folder &&
           !refuse_layer(posix_file_system(), std::filesystem::absolute(folder), consent.only.has_value()).empty();
  });
  program bound = read_program(o.file, consent).bind(parse_bindings(o.dims));
  // A target can be asked about on a machine that does not run it; a device must be here.
  std::string driver, second_driver;
  target_row target;
  std::optional<target_row> family;
  std::unique_ptr<tuning_records> records;
  if (o.device == "host" && o.target != "native") {
    target = find_target(o.target);
    if (const target_row* general = fallback_row(target.name); general && general->family == target_family::amdgpu)
      family = *general;
  } else {
    chosen_device chosen = choose_device(o.device, o.target);
    records = open_records(layers.folder, layers.read_only_layers, chosen, read_extras(o.file).tuning_hints);
    target = chosen.target;
    driver = chosen.driver;
    second_driver = chosen.second_driver;
    family = chosen.family;
  }
  auto kernels = json::array();
  std::size_t hits = 0;
  auto embedded = embedded_entries::read(o.file);
  const std::vector<wanted_kernel> wanted = wanted_kernels(bound, target, driver, records.get());
  // A run takes a kernel of the family's generic target where the cache has none of the device's own.
  const std::vector<wanted_kernel> general =
      family ? wanted_kernels(bound, *family, "", nullptr) : std::vector<wanted_kernel>();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const wanted_kernel& w = wanted[i];
    std::string by = target.name;
    cache_explanation e = explain_cache(folders, w.key, entry_kind::kernel, embedded.get(), &consent);
    if (!e.hit && !second_driver.empty()) {
      kernel_key refused = w.key;
      refused.driver = second_driver;
      if (auto second = explain_cache(folders, refused, entry_kind::kernel, embedded.get(), &consent); second.hit)
        e = second;
    }
    if (!e.hit && i < general.size()) {
      if (auto shared = explain_cache(folders, general[i].key, entry_kind::kernel, embedded.get(), &consent);
          shared.hit)
        e = shared, by = family->name;
    }
    hits += e.hit;
    auto differences = json::array();
    for (const field_difference& d : e.differences)
      differences.push_back({{"field", d.field}, {"wanted", d.wanted}, {"found", d.found}});
    kernels.push_back({{"symbol", w.symbol},
                       {"key", w.key.hash().hex()},
                       {"hit", e.hit},
                       {"target", e.hit ? json(by) : json(nullptr)},
                       {"layer", e.hit ? json(e.layer) : json(nullptr)},
                       {"nearest", e.nearest ? json(e.nearest->hex()) : json(nullptr)},
                       {"differences", differences}});
  }
  output.print({{"file", o.file}, {"hits", hits}, {"misses", kernels.size() - hits}, {"kernels", kernels}}, [&] {
    for (const auto& k : kernels) {
      const bool hit = k["hit"].get<bool>();
      const bool shared = hit && k["target"].get<std::string>() != target.name;
      print("{}  {}  {}{}\n", hit ? "hit " : "miss", k["key"].get<std::string>().substr(0, 16),
            k["symbol"].get<std::string>(), shared ? ", code for " + k["target"].get<std::string>() : "");
      if (hit) continue;
      if (k["nearest"].is_null()) print("      no entry of this kernel\n");
      for (const auto& d : k["differences"])
        print("      {}: wanted '{}', the nearest entry has '{}'\n", d["field"].get<std::string>(),
              d["wanted"].get<std::string>(), d["found"].get<std::string>());
    }
    print("{} hits, {} misses\n", hits, kernels.size() - hits);
  });
  return 0;
}

int copy(const std::filesystem::path& from, const std::filesystem::path& to, transfer_options transfer,
         const output_options& output) {
  cache_copy c = copy_cache(from, to, transfer);
  json document{{"from", from.string()}, {"to", to.string()},    {"copied", c.copied},
                {"present", c.present},  {"damaged", c.damaged}, {"untrusted", c.untrusted},
                {"records", c.records},  {"other", c.other},     {"bytes", c.bytes}};
  output.print(document, [&] {
    print("{} ({:.2f} MB) and {} copied to {}, {} there already\n", counted(c.copied, "entry", "entries"),
          static_cast<double>(c.bytes) / 1e6, counted(c.records, "tuning record"), to.string(), c.present);
    if (c.damaged) print("{} damaged entries left out\n", c.damaged);
    if (c.untrusted)
      print(
          "{} entries without a trusted signature left out (--cache-trust FILE or ~/.config/kiln/trusted_keys lists "
          "the "
          "trusted keys)\n",
          c.untrusted);
    if (c.other) print("{} members of the archive are not entries\n", c.other);
  });
  return 0;
}

// The user's own folder is trusted, so its unsigned entries are signed with the user's key.
transfer_options exporting(const options& o) {
  cache_options cache = cache_options_of(o.cache);
  transfer_options transfer{.sign_with = std::move(cache.sign_with), .merge_record = merge_record_files};
  if (cache.consent.only) transfer.consent = cache.consent;
  if (transfer.sign_with || !cache.consent.user) return transfer;
  if (auto why = refuse_layer(posix_file_system(), std::filesystem::absolute(folder_of(o)), false); !why.empty()) {
    spdlog::warn("{} {}: its unsigned entries are exported without a signature", folder_of(o).string(), why);
    return transfer;
  }
  if (const signing_key* own = cache.consent.user->own()) transfer.sign_unsigned_with = *own;
  return transfer;
}

transfer_options importing(const options& o) {
  cache_options cache = cache_options_of(o.cache);
  return {
      .sign_with = std::move(cache.sign_with), .consent = std::move(cache.consent), .merge_record = merge_record_files};
}

int keygen(const options& o, const output_options& output) {
  signing_key key = signing_key::generate();
  key.write(o.key_file);
  output.print(
      {{"signing_key", o.key_file}, {"public_key", o.key_file + ".pub"}, {"key", to_hex(key.public_half())}}, [&] {
        print("{}: keep it secret (--cache-sign-key)\n{}.pub: give it to those who trust you (--cache-trust)\n",
              o.key_file, o.key_file);
      });
  return 0;
}

}  // namespace

action declare_cache(CLI::App& app) {
  auto o = std::make_shared<options>();
  auto chosen = std::make_shared<action>();
  app.require_subcommand(1);
  auto add = [&](const char* name, const char* summary, const char* example, action act) {
    CLI::App* sub = app.add_subcommand(name, summary);
    sub->footer(fmt::format("Example:\n  kiln cache {}", example));
    add_cache_option(*sub, o->cache);
    sub->fallthrough();  // --json, --quiet and --verbose may follow
    sub->final_callback([chosen, act = std::move(act)] { *chosen = act; });
    return sub;
  };
  add("stats", "Count entries and bytes", "stats --json", [o](const output_options& out) { return stats(*o, out); });
  auto name_file = [o](CLI::App& sub) {
    sub.add_option("--device", o->device, "host, hip:0 or cuda:0");
    sub.add_option("--target", o->target, "Target, instead of this machine's processor");
    sub.add_option("--dim", o->dims, "NAME=VALUE for an open dimension");
  };
  CLI::App* sound = add("verify", "Read and verify every entry, or compile the kernels of a file again and compare",
                        "verify --remove",
                        [o](const output_options& out) { return o->recompile ? recompile(*o, out) : verify(*o, out); });
  sound->add_flag("--remove", o->remove, "Remove damaged entries, replace those that differ");
  CLI::Option* file = sound->add_option("FILE", o->file, ".kiln file, with --recompile");
  file->needs(
      sound->add_flag("--recompile", o->recompile, "Compile every kernel of FILE that the cache has, and compare")
          ->needs(file));
  name_file(*sound);
  add("gc", "Remove stale temporaries and the least recently used entries", "gc --max-bytes 1000000000",
      [o](const output_options& out) { return gc(*o, out); })
      ->add_option("--max-bytes", o->max_bytes, "Bytes that may remain");
  CLI::App* why =
      add("explain", "For every kernel of a file: hit or miss, and which field of the key differs",
          "explain resnet50.kiln --device host", [o](const output_options& out) { return explain(*o, out); });
  why->add_option("FILE", o->file, ".kiln file")->required();
  name_file(*why);
  add("export", "Copy every valid entry and the tuning records to a folder or a .tar.zst archive",
      "export fleet.tar.zst",
      [o](const output_options& out) { return copy(folder_of(*o), o->archive, exporting(*o), out); })
      ->add_option("TO", o->archive, "Folder, or file ending in .tar.zst")
      ->required();
  add("import", "Copy every valid entry and the tuning records from a folder or an archive", "import fleet.tar.zst",
      [o](const output_options& out) { return copy(o->archive, folder_of(*o), importing(*o), out); })
      ->add_option("FROM", o->archive, "Folder or archive")
      ->required();
  add("keygen", "Make a key that signs entries", "keygen fleet.key",
      [o](const output_options& out) { return keygen(*o, out); })
      ->add_option("FILE", o->key_file, "File for the signing key; the public key goes to FILE.pub")
      ->required();
  return [chosen](const output_options& output) { return (*chosen)(output); };
}

}  // namespace kiln::tools
