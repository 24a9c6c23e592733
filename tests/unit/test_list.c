/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists, and walks over lists that change meanwhile. */
#include <stdio.h>
#include <string.h>

#include "base/list.h"
#include "test.h"

#define ITEMS 5

static struct list list;
static struct link items[ITEMS];
static char met[32];

static void fill_list(void)
{
    list = (struct list){0};
    memset(items, 0, sizeof(items));
    met[0] = '\0';
    for (size_t i = 0; i < ITEMS; i++) list_add(&list, &items[i]);
}

/* Walks to the end; what stands at `when` removes `first` to `last` when it is met, and adds them again or not.
 */
static void walk_removing(size_t when, size_t first, size_t last, bool again)
{
    struct list_walk walk;
    struct link *at;

    list_walk_begin(&walk, &list);
    while ((at = list_walk_next(&walk)) != NULL) {
        size_t index = (size_t)(at - items);

        met[strlen(met) + 1] = '\0';
        met[strlen(met)] = (char)('0' + index);
        assert_true(strlen(met) <= ITEMS);
        if (index != when) continue;
        for (size_t i = first; i <= last; i++) list_remove(&list, &items[i]);
        for (size_t i = first; again && i <= last; i++) list_add(&list, &items[i]);
    }
    assert_null(list.walks);
}

TEST(a_walk_meets_everything_once)
{
    fill_list();
    walk_removing(ITEMS, 0, 0, false);
    assert_string_equal(met, "01234");
}

TEST(a_walk_over_an_empty_list_ends_at_once)
{
    struct list empty = {0};
    struct list_walk walk;

    list_walk_begin(&walk, &empty);
    assert_null(list_walk_next(&walk));
    assert_null(empty.walks);
}

/* For every place and every range that is removed there: what is left of the list is met, and nothing else. */
TEST(a_walk_passes_over_removed_items)
{
    for (size_t when = 0; when < ITEMS; when++) {
        for (size_t first = 0; first < ITEMS; first++) {
            for (size_t last = first; last < ITEMS; last++) {
                for (int again = 0; again < 2; again++) {
                    char wanted[ITEMS + 1] = "";

                    fill_list();
                    for (size_t i = 0; i < ITEMS; i++) {
                        if (i > when && i >= first && i <= last) continue;
                        wanted[strlen(wanted)] = (char)('0' + i);
                    }
                    walk_removing(when, first, last, again != 0);
                    assert_string_equal(met, wanted);
                }
            }
        }
    }
}

TEST(walks_may_be_nested)
{
    struct list_walk outer;
    struct list_walk inner;

    fill_list();
    list_walk_begin(&outer, &list);
    assert_ptr_equal(list_walk_next(&outer), &items[0]);
    list_walk_begin(&inner, &list);
    assert_ptr_equal(list_walk_next(&inner), &items[0]);
    list_remove(&list, &items[1]);
    list_remove(&list, &items[4]);
    assert_ptr_equal(list_walk_next(&inner), &items[2]);
    assert_ptr_equal(list_walk_next(&inner), &items[3]);
    assert_null(list_walk_next(&inner));
    list_remove(&list, &items[2]);
    assert_ptr_equal(list_walk_next(&outer), &items[3]);
    assert_null(list_walk_next(&outer));
    assert_null(list.walks);
}

/* ---- rows ---- */

#define BARE_ITEMS 3u
#define BARE_STEPS 8u

/* What the row should hold, in order. */
struct model {
    size_t at[BARE_ITEMS], n;
};

static void model_remove(struct model *model, size_t item)
{
    size_t kept = 0;

    for (size_t i = 0; i < model->n; i++) {
        if (model->at[i] != item) model->at[kept++] = model->at[i];
    }
    model->n = kept;
}

static bool model_has(const struct model *model, size_t item)
{
    for (size_t i = 0; i < model->n; i++) {
        if (model->at[i] == item) return true;
    }
    return false;
}

static void assert_bare_list(const struct bare_list *bare, const struct model *model)
{
    const struct link *link = bare_list_first(bare);

    for (size_t i = 0; i < model->n; i++, link = list_next(link)) assert_ptr_equal(link, &items[model->at[i]]);
    assert_null(link);
    for (size_t i = 0; i < BARE_ITEMS; i++) assert_int_equal(list_has(&items[i]), model_has(model, i));
}

/* So many additions and removals of three items, in every order; one that is there is not added, and the reverse. */
TEST(a_bare_list_keeps_the_order_of_insertion)
{
    unsigned orders = 1;

    for (unsigned i = 0; i < BARE_STEPS; i++) orders *= 2 * BARE_ITEMS;
    for (unsigned order = 0; order < orders; order++) {
        struct bare_list bare = {NULL};
        struct model model = {.n = 0};

        memset(items, 0, sizeof(items));
        for (unsigned i = 0, rest = order; i < BARE_STEPS; i++, rest /= 2 * BARE_ITEMS) {
            size_t item = rest % BARE_ITEMS;

            if (rest / BARE_ITEMS % 2 == 0) {
                if (!model_has(&model, item)) model.at[model.n++] = item;
                bare_list_add(&bare, &items[item]);
            } else {
                model_remove(&model, item);
                bare_list_remove(&bare, &items[item]);
            }
        }
        assert_bare_list(&bare, &model);
    }
}
