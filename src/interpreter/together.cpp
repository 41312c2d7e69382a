#include "interpreter/together.h"

#include <pthread.h>

#include <algorithm>

namespace vortex::interpreter {

namespace {

struct OneBlock {
  Together* together;
  size_t number;
  pthread_t thread;
};

}  // namespace

void* Together::runThread(void* argument) {
  const auto* block = static_cast<OneBlock*>(argument);
  Together& all = *block->together;
  std::unique_lock lock(all.mutex_);
  all.turns_[block->number].wait(lock, [&] { return all.current_ == block->number; });
  lock.unlock();
  const bool goesOn = all.isEnding_ || all.work_(block->number);
  lock.lock();
  all.isEnding_ |= !goesOn;
  all.states_[block->number] = State::Ended;
  all.current_ = kNobody;
  all.paused_.notify_one();
  return nullptr;
}

bool Together::pause(State state) {
  std::unique_lock lock(mutex_);
  const size_t block = current_;
  states_[block] = state;
  current_ = kNobody;
  paused_.notify_one();
  turns_[block].wait(lock, [&] { return current_ == block; });
  return !isEnding_;
}

/// Returns when the block has paused or ended.
void Together::giveTurn(size_t block) {
  std::unique_lock lock(mutex_);
  current_ = block;
  turns_[block].notify_one();
  paused_.wait(lock, [&] { return current_ == kNobody; });
}

bool Together::takeTurns(const std::vector<uint32_t>& order) {
  while (!isEnding_) {
    for (uint32_t block : order)
      if (states_[block] == State::Ready && !isEnding_)
        giveTurn(block);
    if (std::ranges::find(states_, State::Ready) != states_.end())
      continue;
    const auto waiting = static_cast<size_t>(std::ranges::count(states_, State::Waiting));
    if (waiting == 0)
      return true;
    isEnding_ |= !met_(waiting);
    std::ranges::replace(states_, State::Waiting, State::Ready);
  }
  return false;
}

bool Together::run(const std::vector<uint32_t>& order) {
  turns_ = std::vector<std::condition_variable>(order.size());
  states_.assign(order.size(), State::Ready);
  std::vector<OneBlock> blocks(order.size());
  size_t made = 0;
  for (; made < blocks.size(); ++made) {
    blocks[made] = {this, made, {}};
    if (pthread_create(&blocks[made].thread, nullptr, runThread, &blocks[made]) != 0)
      break;
  }
  lacksThreads_ = made < blocks.size();
  isEnding_ = lacksThreads_;
  const bool completed = takeTurns(order);
  isEnding_ = true;
  for (size_t block = 0; block < made; ++block)
    if (states_[block] != State::Ended)
      giveTurn(block);
  for (size_t block = 0; block < made; ++block)
    pthread_join(blocks[block].thread, nullptr);
  return completed;
}

}  // namespace vortex::interpreter
