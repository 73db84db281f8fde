#include "exec_mask.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>

namespace kiln::test {

namespace {

using masks = std::set<std::string>;  // scalar registers by their names in the disassembly: "s3" (wave32), "s[4:5]"
                                      // (wave64), "vcc_lo", "vcc"

// Scalar registers [first, last] by their hardware numbers.
struct register_range {
  int first, last;
  bool overlaps(const register_range& other) const { return first <= other.last && other.first <= last; }
};

std::optional<register_range> scalar_registers(const std::string& text) {
  static const std::map<std::string, register_range> named{
      {"vcc_lo", {106, 106}}, {"vcc_hi", {107, 107}}, {"vcc", {106, 107}}};
  if (auto found = named.find(text); found != named.end()) return found->second;
  if (text.size() < 2 || text[0] != 's') return std::nullopt;
  if (text[1] == '[') return register_range{std::stoi(text.substr(2)), std::stoi(text.substr(text.find(':') + 1))};
  if (text.find_first_not_of("0123456789", 1) != std::string::npos) return std::nullopt;
  const int number = std::stoi(text.substr(1));
  return register_range{number, number};
}

bool is_exec(const std::string& operand) { return operand.starts_with("exec"); }

struct instruction {
  std::string line, opcode;
  std::vector<std::string> operands;
  // `goal` is the target offset of a branch.
  std::uint64_t offset = 0, goal = 0;
  bool is(std::string_view prefix) const { return opcode.starts_with(prefix); }
  bool branches() const { return is("s_cbranch") || opcode == "s_branch"; }
  bool multiplies() const {
    constexpr std::array prefixes{"v_wmma", "v_swmmac", "v_mfma", "v_smfmac"};
    return std::ranges::any_of(prefixes, [&](const char* prefix) { return is(prefix); });
  }
};

// "0x0040: s_and_saveexec_b32 s2, vcc_lo", "0x0050: s_cbranch_execz 4  // 0x0064"
instruction parse(const std::string& line) {
  instruction result{line, {}, {}, std::stoull(line, nullptr, 16)};
  std::string text = line.substr(line.find(": ") + 2);
  if (auto comment = text.find("// "); comment != std::string::npos) {
    result.goal = std::stoull(text.substr(comment + 3), nullptr, 16);
    text.resize(comment);
  }
  const std::size_t space = std::min(text.find(' '), text.size());
  result.opcode = text.substr(0, space);
  for (std::size_t at = text.find_first_not_of(' ', space); at < text.size();) {
    result.operands.push_back(text.substr(at, text.find_first_of(", ", at) - at));
    const std::size_t comma = std::min(text.find(',', at), text.size());
    at = text.find_first_not_of(' ', comma + 1);
  }
  return result;
}

// Facts that hold before an instruction on every path to it.
struct knowledge {
  bool exec_full = true;
  // Registers that hold all lanes.
  masks full;
  // Registers that hold every lane missing from EXEC. Empty while EXEC is full.
  masks complement;

  bool is_full(const std::string& mask) const {
    return is_exec(mask) ? exec_full : mask == "-1" || full.contains(mask);
  }
  bool completes(const std::string& mask) const { return exec_full || is_full(mask) || complement.contains(mask); }
  void forget(const std::string& written) {
    const auto range = scalar_registers(written);
    if (!range) return;
    for (masks* known : {&full, &complement})
      std::erase_if(*known, [&](const std::string& mask) { return scalar_registers(mask)->overlaps(*range); });
  }
  void widen() { exec_full = true, complement.clear(); }
  // Records that EXEC loses lanes; `mask` holds all of them if `mask_completes`.
  void narrow(const std::string& mask = "", bool mask_completes = false) {
    exec_full = false;
    complement.clear();
    if (mask_completes) complement.insert(mask);
  }
  void assign(const std::string& mask, bool now_full, bool now_completes) {
    forget(mask);
    if (!scalar_registers(mask)) return;
    if (now_full) full.insert(mask);
    if (now_completes && !exec_full) complement.insert(mask);
  }
  friend bool operator==(const knowledge&, const knowledge&) = default;
};

knowledge meet(const knowledge& a, const knowledge& b) {
  knowledge both{a.exec_full && b.exec_full, {}, {}};
  std::ranges::set_intersection(a.full, b.full, std::inserter(both.full, both.full.end()));
  if (both.exec_full) return both;
  for (const knowledge* side : {&a, &b})
    for (const masks* known : {&side->full, &side->complement})
      for (const std::string& mask : *known)
        if (a.completes(mask) && b.completes(mask)) both.complement.insert(mask);
  return both;
}

// s_and_saveexec_b32 SAVED, MASK and related instructions: SAVED = EXEC, then EXEC = MASK & EXEC.
void save_exec(const instruction& i, knowledge& state) {
  const std::string &saved = i.operands[0], &mask = i.operands[1];
  const bool was_full = state.exec_full, mask_completes = state.completes(mask);
  state.assign(saved, was_full, false);
  // A mask | EXEC has all that EXEC had, so a register that completed it still does.
  if (i.is("s_or_saveexec")) return mask_completes ? state.widen() : void();
  // EXEC = MASK & ~EXEC. The saved old EXEC holds the missing lanes.
  const bool other_lanes = i.is("s_and_not1_saveexec") || i.is("s_andn2_saveexec");
  state.narrow(saved, other_lanes && mask_completes);
}

// An instruction whose first operand is EXEC.
void write_exec(const instruction& i, bool wave64, knowledge& state) {
  if (i.operands[0] != (wave64 ? "exec" : "exec_lo")) return state.narrow();
  if (i.is("s_mov_b")) return state.is_full(i.operands[1]) ? state.widen() : state.narrow();
  if (i.operands.size() < 3 || !(is_exec(i.operands[1]) || is_exec(i.operands[2]))) return state.narrow();
  const std::string& mask = i.operands[is_exec(i.operands[1]) ? 2 : 1];
  if (i.is("s_or_b")) return state.completes(mask) ? state.widen() : void();
  const bool takes_away = (i.is("s_and_not1_b") || i.is("s_andn2_b")) && is_exec(i.operands[1]);
  state.narrow(mask, takes_away ? state.completes(mask) : i.is("s_xor_b") && state.exec_full);
}

void follow(const instruction& i, bool wave64, knowledge& state) {
  const auto& operands = i.operands;
  if (operands.empty() || i.branches() || i.is("s_cmp") || i.is("s_bitcmp")) return;
  if (i.opcode.find("_saveexec") != std::string::npos) return save_exec(i, state);
  if (i.opcode.find("_wrexec") != std::string::npos) state.narrow();
  if (is_exec(operands[0])) return write_exec(i, wave64, state);
  if (!i.is("s_")) {
    // Comparisons write a mask. Additions with carry and v_div_scale write one as their second operand.
    for (std::size_t k = 0; k < std::min<std::size_t>(operands.size(), 2); ++k) state.forget(operands[k]);
    if (i.is("v_cmpx")) state.narrow();
    return;
  }
  bool now_full = false, now_completes = false;
  if (i.is("s_mov_b")) now_full = state.is_full(operands[1]), now_completes = state.completes(operands[1]);
  if (i.is("s_or_b"))
    now_full = state.is_full(operands[1]) || state.is_full(operands[2]),
    now_completes = state.completes(operands[1]) || state.completes(operands[2]);
  // All lanes ^ EXEC: the lanes missing from EXEC.
  if (i.is("s_xor_b"))
    now_completes =
        (is_exec(operands[1]) && state.is_full(operands[2])) || (is_exec(operands[2]) && state.is_full(operands[1]));
  state.assign(operands[0], now_full, now_completes);
}

}  // namespace

exec_mask_report check_exec_mask(std::span<const std::string> lines) {
  std::vector<instruction> code;
  std::map<std::uint64_t, std::size_t> index_of;
  for (const std::string& line : lines) {
    code.push_back(parse(line));
    index_of[code.back().offset] = code.size() - 1;
  }
  const bool wave64 =
      std::ranges::any_of(code, [](const instruction& i) { return std::ranges::count(i.operands, "exec") > 0; });
  std::vector<std::optional<knowledge>> before(code.size());
  std::vector<std::size_t> work;
  auto reach = [&](std::size_t index, const knowledge& state) {
    knowledge all = before.at(index) ? meet(*before[index], state) : state;
    if (before[index] == all) return;
    before[index] = std::move(all);
    work.push_back(index);
  };
  reach(0, {});
  while (!work.empty()) {
    const std::size_t index = work.back();
    work.pop_back();
    const instruction& i = code[index];
    if (i.opcode == "s_endpgm") continue;
    const bool elsewhere =
        i.is("s_setpc") || i.is("s_swappc") || i.is("s_call") || (i.branches() && !index_of.contains(i.goal));
    if (elsewhere) throw std::runtime_error("a jump whose goal is not in the code: " + i.line);
    knowledge state = *before[index];
    follow(i, wave64, state);
    if (i.branches()) reach(index_of[i.goal], state);
    if (i.opcode != "s_branch") reach(index + 1, state);
  }
  exec_mask_report report;
  for (std::size_t index = 0; index < code.size(); ++index) {
    if (!code[index].multiplies()) continue;
    ++report.matrix_instructions;
    if (before[index] && !before[index]->exec_full) report.narrowed.push_back(code[index].line);
  }
  return report;
}

}  // namespace kiln::test
