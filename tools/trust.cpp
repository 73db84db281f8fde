#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/container/files.hpp"
#include "ir/error.hpp"
#include "ir/trust/safe_path.hpp"
#include "ir/trust/trust_list.hpp"
#include "ir/trust/user_keys.hpp"
#include "tools/command.hpp"
#include "tools/counts.hpp"

namespace kiln::tools {
namespace {

using json = nlohmann::ordered_json;

struct options {
  std::string file, after, expires, trust;
  std::vector<std::string> roots, keys, revoked, sign_with;
  std::uint64_t threshold = 0;
};

void write_text(const std::filesystem::path& file, const std::string& text) {
  container::output_file out(file);
  out.write(std::as_bytes(std::span(text)));
  out.commit();
  // Whatever the umask is: a list that the group can write is not used.
  std::filesystem::permissions(file, std::filesystem::perms(0644));
}

std::chrono::sys_days read_date(const std::string& text, const char* option) {
  const auto day = parse_date(text);
  if (!day) throw error(error_kind::usage, fmt::format("{}: '{}' is not a day like 2027-01-31", option, text));
  return *day;
}

// FILE or FILE=DATE: the first key of a file such as farm.key.pub.
listed_key read_key(const std::string& text, bool may_expire) {
  const auto at = may_expire ? text.rfind('=') : std::string::npos;
  const std::string file = text.substr(0, at);
  listed_key key = read_list(read_trust_text(file), file).keys.front();
  if (at != std::string::npos) key.expires = read_date(text.substr(at + 1), "--key");
  if (key.comment.empty()) key.comment = std::filesystem::path(file).stem().string();
  return key;
}

void put(std::vector<listed_key>& into, listed_key key) {
  std::erase_if(into, [&](const listed_key& k) { return k.key == key.key; });
  into.push_back(std::move(key));
}

int make(const options& o, const output_options& output) {
  trust_root root;
  if (!o.after.empty()) {
    root = read_root(read_trust_text(o.after), o.after);
    ++root.version;
  }
  root.expires = read_date(o.expires, "--expires");
  std::vector<signing_key> signers;
  for (const std::string& file : o.sign_with) signers.push_back(signing_key::read(file));
  if (!o.roots.empty()) {
    root.roots.clear();
    for (const std::string& file : o.roots) put(root.roots, read_key(file, false));
  } else if (o.after.empty()) {
    for (const signing_key& key : signers) put(root.roots, {.key = key.public_half()});
  }
  for (listed_key& k : root.roots) k.expires.reset();
  if (o.threshold) root.threshold = o.threshold;
  if (root.roots.empty() || root.threshold > root.roots.size())
    throw error(error_kind::usage, "--root, --sign-with: name at least as many root keys as --threshold says");
  for (const std::string& file : o.keys) put(root.delegated.keys, read_key(file, true));
  for (const std::string& file : o.revoked) {
    listed_key key = read_key(file, false);
    key.expires.reset();
    std::erase_if(root.delegated.keys, [&](const listed_key& k) { return k.key == key.key; });
    put(root.delegated.revoked, std::move(key));
  }
  std::string text = text_of(root);
  const std::string to_sign = text;
  for (const signing_key& key : signers) text += root_signature(to_sign, key);
  read_root(text, o.file);  // what is written can be read
  write_text(o.file, text);
  output.print({{"file", o.file}, {"version", root.version}, {"signatures", signers.size()}}, [&] {
    print("{}: version {}, {} of {} needed\n", o.file, root.version, counted(signers.size(), "signature"),
          root.threshold);
  });
  return 0;
}

int sign_root(const options& o, const output_options& output) {
  std::string text = read_trust_text(o.file);
  trust_root root = read_root(text, o.file);
  for (const std::string& file : o.sign_with) {
    const signing_key key = signing_key::read(file);
    if (!root.signers.insert(key.public_half()).second) continue;
    if (!text.ends_with('\n')) text += '\n';
    text += root_signature(root.signed_text, key);
  }
  read_root(text, o.file);
  write_text(o.file, text);
  output.print({{"file", o.file}, {"version", root.version}, {"signatures", root.signers.size()}},
               [&] { print("{}: version {}, {} signatures\n", o.file, root.version, root.signers.size()); });
  return 0;
}

json rows_of(const std::vector<listed_key>& keys) {
  auto rows = json::array();
  for (const listed_key& k : keys)
    rows.push_back({{"key", to_hex(k.key)},
                    {"expires", k.expires ? json(date_text(*k.expires)) : json(nullptr)},
                    {"comment", k.comment}});
  return rows;
}

int show(const options& o, const output_options& output) {
  const std::string text = read_trust_text(o.file);
  const bool root_is = is_root(text);
  trust_root root;
  if (root_is) root = read_root(text, o.file);
  else root.delegated = read_list(text, o.file);
  auto signers = json::array();
  for (const public_key& key : root.signers) signers.push_back(to_hex(key));
  json document{{"file", o.file},
                {"root", nullptr},
                {"keys", rows_of(root.delegated.keys)},
                {"revoked", rows_of(root.delegated.revoked)}};
  if (root_is)
    document["root"] = {{"version", root.version},
                        {"expires", date_text(root.expires)},
                        {"threshold", root.threshold},
                        {"root_keys", rows_of(root.roots)},
                        {"signers", signers}};
  output.print(document, [&] {
    if (root_is)
      print("root, version {}, until {}, signed by {} keys of {} that are needed\n", root.version,
            date_text(root.expires), root.signers.size(), root.threshold);
    auto lines = [](const char* what, const std::vector<listed_key>& keys) {
      for (const listed_key& k : keys)
        print("{}  {}{}  {}\n", what, to_hex(k.key), k.expires ? "  until " + date_text(*k.expires) : "", k.comment);
    };
    lines("root key", root.roots);
    lines("key     ", root.delegated.keys);
    lines("revoked ", root.delegated.revoked);
  });
  return 0;
}

std::filesystem::path default_list() {
  const auto user = user_keys::of_this_user();
  if (!user) throw error(error_kind::usage, "--trust: is needed, because HOME is not set");
  return user->folder() / "trusted_keys";
}

int update(const options& o, const output_options& output) {
  namespace fs = std::filesystem;
  const fs::path target = fs::absolute(o.trust.empty() ? default_list() : fs::path(o.trust));
  const std::string text = read_trust_text(o.file);
  const trust_root next = read_root(text, o.file);
  bool changed = true;
  if (fs::exists(target)) {
    if (auto why = refuse_path(target); !why.empty())
      throw error(error_kind::untrusted, target.string() + ": this root of trust is not used: it " + why);
    const std::string there = read_trust_text(target);
    if (!is_root(there))
      throw error(error_kind::usage, target.string() + ": is a plain list of keys; remove it to begin with a root");
    changed = there != text;
    if (changed) require_successor(read_root(there, target.string()), next, o.file);
  } else {
    require_signed(next, o.file);
    make_private_folders(target.parent_path());
  }
  if (has_passed(next.expires))
    throw error(error_kind::untrusted, o.file + ": this root of trust expired on " + date_text(next.expires));
  if (changed) write_text(target, text);
  output.print({{"trust", target.string()}, {"version", next.version}, {"changed", changed}},
               [&] { print("{}: version {}{}\n", target.string(), next.version, changed ? "" : ", there already"); });
  return 0;
}

}  // namespace

action declare_trust(CLI::App& app) {
  auto o = std::make_shared<options>();
  auto chosen = std::make_shared<action>();
  app.require_subcommand(1);
  auto add = [&](const char* name, const char* summary, const char* example,
                 int (*act)(const options&, const output_options&)) {
    CLI::App* sub = app.add_subcommand(name, summary);
    sub->footer(fmt::format("Example:\n  kiln trust {}", example));
    sub->fallthrough();  // --json, --quiet and --verbose may follow
    sub->final_callback([chosen, o, act] { *chosen = [o, act](const output_options& out) { return act(*o, out); }; });
    sub->add_option("FILE", o->file, "Root of trust")->required();
    return sub;
  };
  CLI::App* made = add("make", "Write a root of trust: which keys may sign, and until when",
                       "make fleet.root --expires 2027-12-31 --key farm.key.pub --sign-with root.key", make);
  made->add_option("--after", o->after, "The root that it replaces: its keys are kept, and its version grows by one");
  made->add_option("--expires", o->expires, "Last day, YYYY-MM-DD in UTC")->required();
  made->add_option("--key", o->keys, "PUBLIC.pub or PUBLIC.pub=YYYY-MM-DD: a key that may sign, until then");
  made->add_option("--revoke", o->revoked, "PUBLIC.pub: a key that counts no more");
  made->add_option("--root", o->roots, "PUBLIC.pub of a root key (default: those of --sign-with, or of --after)");
  made->add_option("--threshold", o->threshold, "How many root keys must sign (default: 1, or as --after)");
  made->add_option("--sign-with", o->sign_with, "Root keys that sign");
  add("sign", "Add signatures of root keys", "sign fleet.root --sign-with second.key", sign_root)
      ->add_option("--sign-with", o->sign_with, "Root keys that sign")
      ->required();
  add("show", "Show a root or a list of keys", "show fleet.root --json", show);
  add("update", "Install a root, or replace the one that is there if its keys have signed the new one",
      "update fleet.root", update)
      ->add_option("--trust", o->trust, "Where it is kept (default: ~/.config/kiln/trusted_keys)");
  return [chosen](const output_options& output) { return (*chosen)(output); };
}

}  // namespace kiln::tools
