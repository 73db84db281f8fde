#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "ir/container/files.hpp"
#include "ir/container/native_signature.hpp"
#include "ir/error.hpp"
#include "ir/trust/native_consent.hpp"
#include "ir/trust/signed_file.hpp"
#include "jit/cache/archive.hpp"
#include "jit/cache/transfer.hpp"
#include "session/cache_choice.hpp"
#include "tools/command.hpp"

namespace kiln::tools {
namespace {

using json = nlohmann::ordered_json;

struct options {
  std::vector<std::string> files;
  std::string key, trust;
  std::uint64_t version = 0;
};

bool is_model(const std::string& file) { return file.ends_with(".kiln"); }

signing_key key_of(const options& o) {
  if (!o.key.empty()) return signing_key::read(o.key);
  const auto user = user_keys::of_this_user();
  const signing_key* own = user ? user->own() : nullptr;
  if (!own)
    throw error(error_kind::usage, "--key: is needed, because there is no key of your own" +
                                       (user ? " (" + user->why() + ")" : std::string()));
  return *own;
}

// Signs what is inside, so that machines that trust the key use it, and then the file as a whole.
json sign_file(const std::string& file, const options& o, const signing_key& key) {
  std::uint64_t inside = 0;
  if (is_model(file)) inside = sign_native_code(file, key);
  if (is_archive_name(file)) {
    const cache_copy done = copy_cache(file, file, {.sign_with = key});
    inside = done.copied + done.present;
    if (done.damaged) throw error(error_kind::corrupted, file + ": has damaged entries; it is not signed");
  }
  const file_statement statement = describe_file(file, o.version);
  const std::string text = signed_statement(statement, key);
  container::output_file out(signature_file_of(file));
  out.write(std::as_bytes(std::span(text)));
  out.commit();
  return {{"file", file},
          {"signature", signature_file_of(file).string()},
          {"version", statement.version},
          {"native", inside},
          {"blake3", statement.hash.hex()}};
}

int sign(const options& o, const output_options& output) {
  const signing_key key = key_of(o);
  auto files = json::array();
  for (const std::string& file : o.files) files.push_back(sign_file(file, o, key));
  output.print({{"key", to_hex(key.public_half())}, {"files", files}}, [&] {
    for (const json& f : files)
      print("{}: signed, version {}\n", f["signature"].get<std::string>(), f["version"].get<std::uint64_t>());
    print("by {}\n", to_hex(key.public_half()));
  });
  return 0;
}

void require(const native_consent& consent, const public_key& signer, const std::string& what) {
  if (!consent.trusts(signer)) throw error(error_kind::untrusted, what + " " + consent.complaint(signer));
}

json verify_file(const std::string& file, const options& o, const native_consent& consent) {
  const signed_file found = read_signature_of(file);
  require(consent, found.signer, file + ":");
  if (found.statement.version < o.version)
    throw error(error_kind::untrusted,
                fmt::format("{}: has version {}, and --at-least is {}", file, found.statement.version, o.version));
  json row{{"file", file}, {"key", to_hex(found.signer)}, {"version", found.statement.version}, {"native", nullptr}};
  if (!is_model(file)) return row;
  if (const native_signature native = read_native_signature(file); native.native) {
    if (!native.signer) throw error(error_kind::untrusted, file + ": its native code is not signed");
    require(consent, *native.signer, file + ": its native code");
    row["native"] = to_hex(*native.signer);
  }
  return row;
}

int verify_signatures(const options& o, const output_options& output) {
  cache_choice choice;
  choice.trust = o.trust;
  const native_consent consent = consent_of(choice);
  auto files = json::array();
  for (const std::string& file : o.files) files.push_back(verify_file(file, o, consent));
  output.print({{"files", files}}, [&] {
    for (const json& f : files)
      print("{}: version {}, signed by {}, which is trusted{}\n", f["file"].get<std::string>(),
            f["version"].get<std::uint64_t>(), f["key"].get<std::string>(),
            f["native"].is_null() ? "" : "; so is its native code");
  });
  return 0;
}

}  // namespace

action declare_sign(CLI::App& app) {
  auto o = std::make_shared<options>();
  app.add_option("FILE", o->files, ".kiln files, archives, tuning records, or any other; FILE.sig is written")
      ->required();
  app.add_option("--key", o->key, "Signing key (default: your own, ~/.config/kiln/key)");
  app.add_option("--version", o->version,
                 "Number that grows with each release of FILE, for verify-signature --at-least");
  return [o](const output_options& output) { return sign(*o, output); };
}

action declare_verify_signature(CLI::App& app) {
  auto o = std::make_shared<options>();
  app.add_option("FILE", o->files, "Files that have a FILE.sig")->required();
  app.add_option("--trust", o->trust,
                 "List of keys, or root of trust (default: your own key and ~/.config/kiln/trusted_keys)");
  app.add_option("--at-least", o->version, "Refuse a lower version");
  return [o](const output_options& output) { return verify_signatures(*o, output); };
}

}  // namespace kiln::tools
