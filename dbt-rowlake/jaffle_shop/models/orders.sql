{{ config(
    materialized='incremental',
    unique_key='order_id',
    incremental_strategy='merge',
    partition_by='months(ordered_on)',
    on_schema_change='append_new_columns'
) }}
with paid as (
    select order_id, sum(amount) as amount from {{ ref('stg_payments') }} group by order_id
)
select o.order_id, o.customer_id, o.ordered_on, o.status, coalesce(p.amount, 0) as amount
from {{ ref('stg_orders') }} o
left join paid p on p.order_id = o.order_id
{% if is_incremental() %}
where o.ordered_on >= (select date_sub(max(ordered_on), 60) from {{ this }})
{% endif %}
