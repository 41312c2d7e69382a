#pragma once

#include <cstdint>
#include <string_view>

namespace vortex::lang::syntax {

enum class Tok : uint8_t {
  EndOfFile,
  Invalid,  ///< already reported by the lexer
  Identifier,
  Int,
  Float,
  String,
  // Keywords, in the order of kKeywords.
  KwFn,
  KwKernel,
  KwStruct,
  KwEnum,
  KwTrait,
  KwImpl,
  KwType,
  KwConst,
  KwImport,
  KwPub,
  KwLet,
  KwVar,
  KwIf,
  KwElse,
  KwMatch,
  KwWhile,
  KwLoop,
  KwFor,
  KwIn,
  KwBreak,
  KwContinue,
  KwReturn,
  KwAs,
  KwWhere,
  KwMut,
  KwTrue,
  KwFalse,
  KwInf,
  // Brackets: each closing one follows its opening one.
  LParen,
  RParen,
  LBracket,
  RBracket,
  LBrace,
  RBrace,
  // Punctuation and operators, in the order of kOperators.
  Ellipsis,
  StarStarEq,
  ShlEq,
  ShrEq,
  DotDot,
  ColonColon,
  Arrow,
  FatArrow,
  StarStar,
  Shl,
  Shr,
  AndAnd,
  OrOr,
  EqEq,
  NotEq,
  LtEq,
  GtEq,
  PlusEq,
  MinusEq,
  StarEq,
  SlashEq,
  PercentEq,
  AtEq,
  AmpEq,
  PipeEq,
  CaretEq,
  Comma,
  Semicolon,
  Colon,
  Dot,
  At,
  Eq,
  Lt,
  Gt,
  Plus,
  Minus,
  Star,
  Slash,
  Percent,
  Amp,
  Pipe,
  Caret,
  Bang,
  Tilde,
  Question,
};

/// As written, for tokens with one spelling; "" for the others.
std::string_view spelling(Tok tok);
/// Tok::Identifier if `word` is no keyword.
Tok keywordOf(std::string_view word);

inline bool isKeyword(Tok tok) { return tok >= Tok::KwFn && tok <= Tok::KwInf; }
inline bool isOpening(Tok tok) { return tok == Tok::LParen || tok == Tok::LBracket || tok == Tok::LBrace; }
inline bool isClosing(Tok tok) { return tok == Tok::RParen || tok == Tok::RBracket || tok == Tok::RBrace; }
inline Tok closingOf(Tok opening) { return static_cast<Tok>(static_cast<uint8_t>(opening) + 1); }
inline Tok openingOf(Tok closing) { return static_cast<Tok>(static_cast<uint8_t>(closing) - 1); }

struct Token {
  Tok tok = Tok::EndOfFile;
  /// A newline (in code or inside a comment) lies between the previous token and this one.
  bool newlineBefore = false;
  /// Inserted to balance the brackets; has no text. Already reported.
  bool isSynthetic = false;
  uint32_t begin = 0;
  uint32_t end = 0;
};

}  // namespace vortex::lang::syntax
